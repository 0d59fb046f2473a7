"""zarr-python's machine of hierarchies, for a store where a smaller shape clears what it cuts."""
import zarr
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from zarr.testing.stateful import ZarrHierarchyStateMachine


class Resizing(ZarrHierarchyStateMachine):
    """A chunk that a smaller shape cuts in the middle keeps nothing of what was cut (docs/PYTHON.md), where zarr's own
    stores show it again: the model is cleared, too."""

    @precondition(lambda self: bool(self.all_arrays))
    @rule(data=st.data())
    def resize_array(self, data):
        before = {path: zarr.open_array(path=path, store=self.model).shape for path in self.all_arrays}
        super().resize_array(data)
        for path, was in before.items():
            array = zarr.open_array(path=path, store=self.model)
            now = array.shape
            if any(new < old for new, old in zip(now, was)):
                array.resize(tuple(max(sizes) for sizes in zip(now, was)))
                for axis, new in enumerate(now):
                    array[(slice(None),) * axis + (slice(new, None),)] = array.fill_value
                array.resize(now)


# The oldest zarr's machine does not resize.
Hierarchy = Resizing if hasattr(ZarrHierarchyStateMachine, "resize_array") else ZarrHierarchyStateMachine
