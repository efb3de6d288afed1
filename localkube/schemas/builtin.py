"""The schemas of built-in kinds, written by hand; the pod spec alone comes from upstream data.

They have fields and types, for decoding and pruning. Which values are allowed is in `resources`.
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
    LOCAL_OBJECT_REFERENCE,
    NULLABLE_TIME,
    OBJECT_REFERENCE,
    POD_SPEC,
    POD_TEMPLATE,
    QUANTITY_MAP,
    RESOURCE_REQUIREMENTS,
    STRING,
    STRING_MAP,
    TIME,
    Schema,
    kind_schema,
    list_schema,
    map_schema,
    object_schema,
    set_schema,
)

PROTOCOL: Schema = STRING | {"default": "TCP"}
"""The protocol of a port, half of its key.

Server-side apply takes the default for one that is left out.
"""


CLAIM_SPEC = object_schema(
    "PersistentVolumeClaimSpec",
    accessModes=list_schema(STRING),
    selector=LABEL_SELECTOR,
    resources=object_schema(
        "VolumeResourceRequirements", limits=QUANTITY_MAP, requests=QUANTITY_MAP
    ),
    volumeName=STRING,
    storageClassName=STRING,
    volumeMode=STRING,
    dataSource=ANY,
    dataSourceRef=ANY,
    volumeAttributesClassName=STRING,
)


def build_pod_schema() -> Schema:
    return kind_schema(
        "Pod",
        spec=POD_SPEC,
        status=object_schema(
            "PodStatus",
            observedGeneration=INT64,
            phase=STRING,
            conditions=CONDITIONS,
            message=STRING,
            reason=STRING,
            nominatedNodeName=STRING,
            hostIP=STRING,
            hostIPs=list_schema(object_schema("HostIP", ip=STRING)),
            podIP=STRING,
            podIPs=list_schema(object_schema("PodIP", ip=STRING), "ip"),
            startTime=TIME,
            initContainerStatuses=CONTAINER_STATUSES,
            containerStatuses=CONTAINER_STATUSES,
            ephemeralContainerStatuses=CONTAINER_STATUSES,
            qosClass=STRING,
            resize=STRING,
            resourceClaimStatuses=list_schema(ANY),
            extendedResourceClaimStatus=ANY,
            allocatedResources=QUANTITY_MAP,
            resources=RESOURCE_REQUIREMENTS,
        ),
    )


def build_job_schema() -> Schema:
    return kind_schema(
        "Job",
        spec=object_schema(
            "JobSpec",
            parallelism=INT32,
            completions=INT32,
            activeDeadlineSeconds=INT64,
            podFailurePolicy=object_schema(
                "PodFailurePolicy",
                rules=list_schema(
                    object_schema(
                        "PodFailurePolicyRule",
                        action=STRING,
                        onExitCodes=object_schema(
                            "PodFailurePolicyOnExitCodesRequirement",
                            containerName=STRING,
                            operator=STRING,
                            values=set_schema(INT32),
                        ),
                        onPodConditions=list_schema(
                            object_schema(
                                "PodFailurePolicyOnPodConditionsPattern", type=STRING, status=STRING
                            )
                        ),
                    )
                ),
            ),
            successPolicy=object_schema(
                "SuccessPolicy",
                rules=list_schema(
                    object_schema(
                        "SuccessPolicyRule", succeededIndexes=STRING, succeededCount=INT32
                    )
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
        status=object_schema(
            "JobStatus",
            conditions=list_schema(CONDITION),
            startTime=TIME,
            completionTime=TIME,
            active=INT32,
            succeeded=INT32,
            failed=INT32,
            terminating=INT32,
            ready=INT32,
            completedIndexes=STRING,
            failedIndexes=STRING,
            uncountedTerminatedPods=object_schema(
                "UncountedTerminatedPods", succeeded=list_schema(STRING), failed=list_schema(STRING)
            ),
        ),
    )


def build_service_schema() -> Schema:
    port = object_schema(
        "ServicePort",
        name=STRING,
        protocol=PROTOCOL,
        appProtocol=STRING,
        port=INT32,
        targetPort=INT_OR_STRING,
        nodePort=INT32,
    )
    ingress = object_schema(
        "LoadBalancerIngress", ip=STRING, hostname=STRING, ipMode=STRING, ports=list_schema(ANY)
    )
    return kind_schema(
        "Service",
        spec=object_schema(
            "ServiceSpec",
            ports=list_schema(port, "port", "protocol"),
            selector=STRING_MAP,
            clusterIP=STRING,
            clusterIPs=list_schema(STRING),
            type=STRING,
            externalIPs=list_schema(STRING),
            sessionAffinity=STRING,
            sessionAffinityConfig=ANY,
            loadBalancerIP=STRING,
            loadBalancerSourceRanges=list_schema(STRING),
            loadBalancerClass=STRING,
            allocateLoadBalancerNodePorts=BOOL,
            externalName=STRING,
            externalTrafficPolicy=STRING,
            internalTrafficPolicy=STRING,
            trafficDistribution=STRING,
            healthCheckNodePort=INT32,
            publishNotReadyAddresses=BOOL,
            ipFamilies=list_schema(STRING),
            ipFamilyPolicy=STRING,
        ),
        status=object_schema(
            "ServiceStatus",
            loadBalancer=object_schema("LoadBalancerStatus", ingress=list_schema(ingress)),
            conditions=CONDITIONS,
        ),
    )


def build_node_schema() -> Schema:
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
    endpoint = object_schema("DaemonEndpoint", Port=INT32)
    taint = object_schema("Taint", key=STRING, value=STRING, effect=STRING, timeAdded=TIME)
    return kind_schema(
        "Node",
        spec=object_schema(
            "NodeSpec",
            podCIDR=STRING,
            podCIDRs=list_schema(STRING),
            providerID=STRING,
            unschedulable=BOOL,
            taints=list_schema(taint),
            configSource=ANY,
            externalID=STRING,
        ),
        status=object_schema(
            "NodeStatus",
            capacity=QUANTITY_MAP,
            allocatable=QUANTITY_MAP,
            phase=STRING,
            conditions=CONDITIONS,
            addresses=list_schema(
                object_schema("NodeAddress", type=STRING, address=STRING), "type"
            ),
            daemonEndpoints=object_schema("NodeDaemonEndpoints", kubeletEndpoint=endpoint),
            nodeInfo=object_schema("NodeSystemInfo", **dict.fromkeys(info, STRING), swap=ANY),
            images=list_schema(
                object_schema("ContainerImage", names=list_schema(STRING), sizeBytes=INT64)
            ),
            volumesInUse=list_schema(STRING),
            volumesAttached=list_schema(
                object_schema("AttachedVolume", name=STRING, devicePath=STRING)
            ),
            config=ANY,
            runtimeHandlers=list_schema(ANY),
            features=ANY,
            declaredFeatures=list_schema(STRING),
        ),
    )


def build_namespace_schema() -> Schema:
    return kind_schema(
        "Namespace",
        spec=object_schema("NamespaceSpec", finalizers=list_schema(STRING)),
        status=object_schema("NamespaceStatus", phase=STRING, conditions=CONDITIONS),
    )


def build_configmap_schema() -> Schema:
    return kind_schema("ConfigMap", data=STRING_MAP, binaryData=map_schema(BYTES), immutable=BOOL)


def build_secret_schema() -> Schema:
    return kind_schema(
        "Secret", data=map_schema(BYTES), stringData=STRING_MAP, type=STRING, immutable=BOOL
    )


def build_serviceaccount_schema() -> Schema:
    return kind_schema(
        "ServiceAccount",
        secrets=list_schema(OBJECT_REFERENCE, "name"),
        imagePullSecrets=list_schema(LOCAL_OBJECT_REFERENCE),
        automountServiceAccountToken=BOOL,
    )


def build_claim_schema() -> Schema:
    return kind_schema(
        "PersistentVolumeClaim",
        spec=CLAIM_SPEC,
        status=object_schema(
            "PersistentVolumeClaimStatus",
            phase=STRING,
            accessModes=list_schema(STRING),
            capacity=QUANTITY_MAP,
            conditions=CONDITIONS,
            allocatedResources=QUANTITY_MAP,
            allocatedResourceStatuses=STRING_MAP,
            currentVolumeAttributesClassName=STRING,
            modifyVolumeStatus=ANY,
        ),
    )


def build_storageclass_schema() -> Schema:
    return kind_schema(
        "StorageClass",
        provisioner=STRING,
        parameters=STRING_MAP,
        reclaimPolicy=STRING,
        mountOptions=list_schema(STRING),
        allowVolumeExpansion=BOOL,
        volumeBindingMode=STRING,
        allowedTopologies=list_schema(ANY),
    )


def build_priorityclass_schema() -> Schema:
    return kind_schema(
        "PriorityClass",
        value=INT32,
        globalDefault=BOOL,
        description=STRING,
        preemptionPolicy=STRING,
    )


def build_lease_schema() -> Schema:
    return kind_schema(
        "Lease",
        spec=object_schema(
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


SERIES = object_schema("EventSeries", count=INT32, lastObservedTime=NULLABLE_TIME)
EVENT_SOURCE = object_schema("EventSource", component=STRING, host=STRING)


def build_event_schema() -> Schema:
    return kind_schema(
        "Event",
        involvedObject=OBJECT_REFERENCE,
        reason=STRING,
        message=STRING,
        source=EVENT_SOURCE,
        firstTimestamp=NULLABLE_TIME,
        lastTimestamp=NULLABLE_TIME,
        count=INT32,
        type=STRING,
        eventTime=NULLABLE_TIME,
        series=SERIES,
        action=STRING,
        related=OBJECT_REFERENCE,
        reportingComponent=STRING,
        reportingInstance=STRING,
    )


def build_event_v1_schema() -> Schema:
    return kind_schema(
        "Event",
        eventTime=NULLABLE_TIME,
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
        deprecatedFirstTimestamp=NULLABLE_TIME,
        deprecatedLastTimestamp=NULLABLE_TIME,
        deprecatedCount=INT32,
    )


KINDS: dict[str, Callable[[], Schema]] = {
    "pods": build_pod_schema,
    "jobs": build_job_schema,
    "services": build_service_schema,
    "nodes": build_node_schema,
    "namespaces": build_namespace_schema,
    "configmaps": build_configmap_schema,
    "secrets": build_secret_schema,
    "serviceaccounts": build_serviceaccount_schema,
    "persistentvolumeclaims": build_claim_schema,
    "storageclasses": build_storageclass_schema,
    "priorityclasses": build_priorityclass_schema,
    "leases": build_lease_schema,
    "events": build_event_schema,
    "events-v1": build_event_v1_schema,
}
"""The schema builders by the name that a resource gives, for `load_schema`."""
