"""A compatibility vector beside every item of a collection that has topical ones already."""

from coder_ir.attached.filling import Attachment, attach
from coder_ir.attached.opening import open_source
from coder_ir.attached.searcher import Attached

__all__ = ["Attached", "Attachment", "attach", "open_source"]
