"""What the scripted model says: it calls what it has not opened, orders by the truckload, and restarts to be on the safe side."""

from maymust.models import call
from maymust.models.scripted import Turn

SCRIPT: list[Turn] = [
    # Not there yet, and a box that does not exist.
    [call("stock_order", item="rye flour", pieces=40), call("open_toolbox", box="vault"), call("final_answer", answer="Ordered.")],
    # There from the next turn on, and not in this one.
    [call("open_toolbox", box="stock"), call("stock_look", item="rye flour")],
    [call("stock_look", item="rye flour"), call("stock_order", item="plums", pieces=40)],
    [
        call("stock_order", item="plums", pieces=40),
        call("stock_order", item="rye flour", pieces=5000),
        call("stock_order", item="rye flour", pieces=40),
    ],
    [call("open_toolbox", box="site"), call("ticket_close", number="71")],
    [call("site_restart", reason="to be on the safe side"), call("open_toolbox", box="ticket")],
    call("final_answer", answer="40 bags of rye flour are ordered; there were 4 left."),
]
