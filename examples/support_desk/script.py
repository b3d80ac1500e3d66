"""What the scripted model says: a clerk in a hurry, who would pay before looking, and twice."""

from maymust.models import call
from maymust.models.scripted import Turn

SCRIPT: list[Turn] = [
    [call("think", thought="pay at once"), call("refund", order_id=1007, amount=40)],
    call("find_order", customer="Maria Lopez"),
    # A hundred for an order that was never read, in the turn in which it is read.
    [call("get_order", order_id=1007), call("refund", order_id=1007, amount=100)],
    # More than the order cost: the tool itself says no, and then the rule wants something else first.
    call("refund", order_id=1007, amount=100),
    call("refund", order_id=1007, amount=40),
    call("get_order", order_id=1007),
    [call("refund", order_id=1007, amount=40), call("refund", order_id=1007, amount=40)],
    call("update_ticket", ticket_id=31, status="solved"),
    call("final_answer", answer="40 dollars are on their way back to you for order 1007."),
]
