"""What the scripted model says: it books before it has looked, for more than there is, twice, and cancels somebody else's booking."""

from maymust.models import call
from maymust.models.scripted import Turn

SCRIPT: list[Turn] = [
    call("book", room="tower", nights=3, cents=38700),
    call("search_rooms", beds=2, nights=3),
    # A room that does not exist, one above the budget, a price of its own, and at last one a person can be asked about.
    [
        call("book", room="palace", nights=3, cents=100),
        call("book", room="hall", nights=3, cents=59700),
        call("book", room="garden", nights=3, cents=26700),
    ],
    # Whatever the person has said, it tries again.
    [call("book", room="tower", nights=3, cents=100), call("cancel_booking", booking=77)],
    call("final_answer", answer="That is all I could do about the room."),
]
