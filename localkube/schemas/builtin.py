"""The schemas of built-in kinds, written by hand; the pod spec alone comes from upstream data.

They know fields and types, for decoding and pruning. What a value may be is for `resources` to say.
"""

from collections.abc import Callable

from localkube.schemas.notation import (
    ANY,
    BOOL,
    BYTES,
    CONDITION,
    CONDITIONS,
    CONTAINER_STATUSES,
    INT32,
    INT64,
    INT_OR_STRING,
    LABEL_SELECTOR,
    NAMED,
    NULL_TIME,
    OBJECT_REFERENCE,
    POD_SPEC,
    POD_TEMPLATE,
    QUANTITIES,
    RESOURCE_REQUIREMENTS,
    STRING,
    TEXTS,
    TIME,
    Schema,
    kind,
    many,
    record,
    table,
    unique,
)

PROTOCOL: Schema = STRING | {"default": "TCP"}
"""Half of a port's key: server-side apply takes the default for one that is left out."""


CLAIM_SPEC = record(
    "PersistentVolumeClaimSpec",
    accessModes=many(STRING),
    selector=LABEL_SELECTOR,
    resources=record("VolumeResourceRequirements", limits=QUANTITIES, requests=QUANTITIES),
    volumeName=STRING,
    storageClassName=STRING,
    volumeMode=STRING,
    dataSource=ANY,
    dataSourceRef=ANY,
    volumeAttributesClassName=STRING,
)


def pods() -> Schema:
    return kind(
        "Pod",
        spec=POD_SPEC,
        status=record(
            "PodStatus",
            observedGeneration=INT64,
            phase=STRING,
            conditions=CONDITIONS,
            message=STRING,
            reason=STRING,
            nominatedNodeName=STRING,
            hostIP=STRING,
            hostIPs=many(record("HostIP", ip=STRING)),
            podIP=STRING,
            podIPs=many(record("PodIP", ip=STRING), "ip"),
            startTime=TIME,
            initContainerStatuses=CONTAINER_STATUSES,
            containerStatuses=CONTAINER_STATUSES,
            ephemeralContainerStatuses=CONTAINER_STATUSES,
            qosClass=STRING,
            resize=STRING,
            resourceClaimStatuses=many(ANY),
            extendedResourceClaimStatus=ANY,
            allocatedResources=QUANTITIES,
            resources=RESOURCE_REQUIREMENTS,
        ),
    )


def jobs() -> Schema:
    return kind(
        "Job",
        spec=record(
            "JobSpec",
            parallelism=INT32,
            completions=INT32,
            activeDeadlineSeconds=INT64,
            podFailurePolicy=record(
                "PodFailurePolicy",
                rules=many(
                    record(
                        "PodFailurePolicyRule",
                        action=STRING,
                        onExitCodes=record(
                            "PodFailurePolicyOnExitCodesRequirement",
                            containerName=STRING,
                            operator=STRING,
                            values=unique(INT32),
                        ),
                        onPodConditions=many(
                            record(
                                "PodFailurePolicyOnPodConditionsPattern", type=STRING, status=STRING
                            )
                        ),
                    )
                ),
            ),
            successPolicy=record(
                "SuccessPolicy",
                rules=many(
                    record("SuccessPolicyRule", succeededIndexes=STRING, succeededCount=INT32)
                ),
            ),
            backoffLimit=INT32,
            backoffLimitPerIndex=INT32,
            maxFailedIndexes=INT32,
            selector=LABEL_SELECTOR,
            manualSelector=BOOL,
            template=POD_TEMPLATE,
            ttlSecondsAfterFinished=INT32,
            completionMode=STRING,
            suspend=BOOL,
            podReplacementPolicy=STRING,
            managedBy=STRING,
        ),
        status=record(
            "JobStatus",
            conditions=many(CONDITION),
            startTime=TIME,
            completionTime=TIME,
            active=INT32,
            succeeded=INT32,
            failed=INT32,
            terminating=INT32,
            ready=INT32,
            completedIndexes=STRING,
            failedIndexes=STRING,
            uncountedTerminatedPods=record(
                "UncountedTerminatedPods", succeeded=many(STRING), failed=many(STRING)
            ),
        ),
    )


def services() -> Schema:
    port = record(
        "ServicePort",
        name=STRING,
        protocol=PROTOCOL,
        appProtocol=STRING,
        port=INT32,
        targetPort=INT_OR_STRING,
        nodePort=INT32,
    )
    ingress = record(
        "LoadBalancerIngress", ip=STRING, hostname=STRING, ipMode=STRING, ports=many(ANY)
    )
    return kind(
        "Service",
        spec=record(
            "ServiceSpec",
            ports=many(port, "port", "protocol"),
            selector=TEXTS,
            clusterIP=STRING,
            clusterIPs=many(STRING),
            type=STRING,
            externalIPs=many(STRING),
            sessionAffinity=STRING,
            sessionAffinityConfig=ANY,
            loadBalancerIP=STRING,
            loadBalancerSourceRanges=many(STRING),
            loadBalancerClass=STRING,
            allocateLoadBalancerNodePorts=BOOL,
            externalName=STRING,
            externalTrafficPolicy=STRING,
            internalTrafficPolicy=STRING,
            trafficDistribution=STRING,
            healthCheckNodePort=INT32,
            publishNotReadyAddresses=BOOL,
            ipFamilies=many(STRING),
            ipFamilyPolicy=STRING,
        ),
        status=record(
            "ServiceStatus",
            loadBalancer=record("LoadBalancerStatus", ingress=many(ingress)),
            conditions=CONDITIONS,
        ),
    )


def nodes() -> Schema:
    info = (
        "machineID",
        "systemUUID",
        "bootID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    )
    endpoint = record("DaemonEndpoint", Port=INT32)
    taint = record("Taint", key=STRING, value=STRING, effect=STRING, timeAdded=TIME)
    return kind(
        "Node",
        spec=record(
            "NodeSpec",
            podCIDR=STRING,
            podCIDRs=many(STRING),
            providerID=STRING,
            unschedulable=BOOL,
            taints=many(taint),
            configSource=ANY,
            externalID=STRING,
        ),
        status=record(
            "NodeStatus",
            capacity=QUANTITIES,
            allocatable=QUANTITIES,
            phase=STRING,
            conditions=CONDITIONS,
            addresses=many(record("NodeAddress", type=STRING, address=STRING), "type"),
            daemonEndpoints=record("NodeDaemonEndpoints", kubeletEndpoint=endpoint),
            nodeInfo=record("NodeSystemInfo", **dict.fromkeys(info, STRING), swap=ANY),
            images=many(record("ContainerImage", names=many(STRING), sizeBytes=INT64)),
            volumesInUse=many(STRING),
            volumesAttached=many(record("AttachedVolume", name=STRING, devicePath=STRING)),
            config=ANY,
            runtimeHandlers=many(ANY),
            features=ANY,
            declaredFeatures=many(STRING),
        ),
    )


def namespaces() -> Schema:
    return kind(
        "Namespace",
        spec=record("NamespaceSpec", finalizers=many(STRING)),
        status=record("NamespaceStatus", phase=STRING, conditions=CONDITIONS),
    )


def configmaps() -> Schema:
    return kind("ConfigMap", data=TEXTS, binaryData=table(BYTES), immutable=BOOL)


def secrets() -> Schema:
    return kind("Secret", data=table(BYTES), stringData=TEXTS, type=STRING, immutable=BOOL)


def serviceaccounts() -> Schema:
    return kind(
        "ServiceAccount",
        secrets=many(OBJECT_REFERENCE, "name"),
        imagePullSecrets=many(NAMED),
        automountServiceAccountToken=BOOL,
    )


def persistentvolumeclaims() -> Schema:
    return kind(
        "PersistentVolumeClaim",
        spec=CLAIM_SPEC,
        status=record(
            "PersistentVolumeClaimStatus",
            phase=STRING,
            accessModes=many(STRING),
            capacity=QUANTITIES,
            conditions=CONDITIONS,
            allocatedResources=QUANTITIES,
            allocatedResourceStatuses=TEXTS,
            currentVolumeAttributesClassName=STRING,
            modifyVolumeStatus=ANY,
        ),
    )


def storageclasses() -> Schema:
    return kind(
        "StorageClass",
        provisioner=STRING,
        parameters=TEXTS,
        reclaimPolicy=STRING,
        mountOptions=many(STRING),
        allowVolumeExpansion=BOOL,
        volumeBindingMode=STRING,
        allowedTopologies=many(ANY),
    )


def priorityclasses() -> Schema:
    return kind(
        "PriorityClass",
        value=INT32,
        globalDefault=BOOL,
        description=STRING,
        preemptionPolicy=STRING,
    )


def leases() -> Schema:
    return kind(
        "Lease",
        spec=record(
            "LeaseSpec",
            holderIdentity=STRING,
            leaseDurationSeconds=INT32,
            acquireTime=TIME,
            renewTime=TIME,
            leaseTransitions=INT32,
            strategy=STRING,
            preferredHolder=STRING,
        ),
    )


SERIES = record("EventSeries", count=INT32, lastObservedTime=NULL_TIME)
EVENT_SOURCE = record("EventSource", component=STRING, host=STRING)


def events() -> Schema:
    return kind(
        "Event",
        involvedObject=OBJECT_REFERENCE,
        reason=STRING,
        message=STRING,
        source=EVENT_SOURCE,
        firstTimestamp=NULL_TIME,
        lastTimestamp=NULL_TIME,
        count=INT32,
        type=STRING,
        eventTime=NULL_TIME,
        series=SERIES,
        action=STRING,
        related=OBJECT_REFERENCE,
        reportingComponent=STRING,
        reportingInstance=STRING,
    )


def events_v1() -> Schema:
    return kind(
        "Event",
        eventTime=NULL_TIME,
        series=SERIES,
        reportingController=STRING,
        reportingInstance=STRING,
        action=STRING,
        reason=STRING,
        regarding=OBJECT_REFERENCE,
        related=OBJECT_REFERENCE,
        note=STRING,
        type=STRING,
        deprecatedSource=EVENT_SOURCE,
        deprecatedFirstTimestamp=NULL_TIME,
        deprecatedLastTimestamp=NULL_TIME,
        deprecatedCount=INT32,
    )


KINDS: dict[str, Callable[[], Schema]] = {
    "pods": pods,
    "jobs": jobs,
    "services": services,
    "nodes": nodes,
    "namespaces": namespaces,
    "configmaps": configmaps,
    "secrets": secrets,
    "serviceaccounts": serviceaccounts,
    "persistentvolumeclaims": persistentvolumeclaims,
    "storageclasses": storageclasses,
    "priorityclasses": priorityclasses,
    "leases": leases,
    "events": events,
    "events-v1": events_v1,
}
"""What `schemas.load` finds here, by the name a resource gives."""
