"""Where in a body the fields of a Spec come from, so that problems point at what was sent."""

from workloads.rest.parts import LocatedBody


class BodyPlaces:
    """The place in the body of each field of a Spec, and which fields have a value there."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}
        self._parts: dict[str, tuple[str, LocatedBody]] = {}
        self._given: set[str] = set()

    @property
    def given_fields(self) -> frozenset[str]:
        """Return the fields of the Spec that have a value in the body."""
        return frozenset(self._given)

    def add_field(self, path: str, place: str, *, is_given: bool = False) -> None:
        """Record the place of a field of the Spec."""
        self._places[path] = place
        if is_given:
            self._given.add(path)

    def add_part(self, path: str, place: str, body: LocatedBody) -> None:
        """Record the place of a part whose body knows the places of its attributes."""
        self._parts[path] = place, body

    def find_place(self, path: str) -> str:
        """Return the place of a field of the Spec; that of its nearest parent where it has none."""
        attribute = ""
        while path:
            if path in self._parts:
                place, body = self._parts[path]
                return ".".join(filter(None, (place, body.locate(attribute))))
            if path in self._places:
                return self._places[path]
            path, _, attribute = path.rpartition(".")
        return "spec"
