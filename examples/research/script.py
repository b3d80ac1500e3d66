"""What the scripted model says: it answers from memory, cites what it never opened, and quotes what nobody wrote."""

from maymust.models import call
from maymust.models.scripted import Turn

TRUE = "carried 88,450 passengers, more than in any year before"

SCRIPT: list[Turn] = [
    call("final_answer", answer="2022, with a hundred thousand [everybody-knows]."),
    call("search", words="ferry passengers year"),
    # A path out of the library, a source no search has found, and a quote in the turn in which its source is read.
    [
        call("read", source="../script"),
        call("read", source="bridge-leaflet"),
        call("read", source="harbour-report-2022"),
        call("cite", source="harbour-report-2022", quote=TRUE),
    ],
    # Never opened; made up; and at last what is written there.
    [
        call("cite", source="local-paper-2022-10", quote="We expect a hundred thousand passengers this year"),
        call("cite", source="harbour-report-2022", quote="thanks to the evening ferry"),
        call("cite", source="harbour-report-2022", quote=TRUE),
    ],
    call("final_answer", answer="In 2022, with 88,450 passengers [harbour-report-2022] [local-paper-2022-10]."),
    call("final_answer", answer="In 2022, with 88,450 passengers [harbour-report-2022]."),
]
