"""A server on loopback that speaks three providers' protocols and is as picky as they are."""

from tests.models.picky.faults import Broken, Drop, Fault, Hang, Limited, Refuse
from tests.models.picky.manners import Manners
from tests.models.picky.server import PickyServer, Seen
from tests.models.picky.wire import Wire

__all__ = ["Broken", "Drop", "Fault", "Hang", "Limited", "Manners", "PickyServer", "Refuse", "Seen", "Wire"]
