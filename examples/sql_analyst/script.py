"""What the scripted model says: an analyst who knows the answer already, wants all rows, and tries what else SQL can do."""

from maymust.models import call
from maymust.models.scripted import Turn

BEST = """\
SELECT town, sum(pieces * cents) / 100 AS euros FROM sales
JOIN branches ON branches.id = branch_id JOIN products ON products.id = product_id
GROUP BY town ORDER BY euros DESC"""
FOR_EVER = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT max(n) FROM numbers"

SCRIPT: list[Turn] = [
    [call("query", sql="SELECT * FROM sales", limit=10), call("final_answer", answer="Eastmere, of course.")],
    [call("list_tables"), call("describe", table="sales")],
    [call("describe", table="sqlite_schema"), call("describe", table="sales"), call("describe", table="branches")],
    call("query", sql="SELECT * FROM sales", limit=5000),
    # Each of these is lawful as a call; what the SQL wants is not.
    [
        call("query", sql="DROP TABLE sales", limit=1),
        call("query", sql="UPDATE sales SET pieces = 0", limit=1),
        call("query", sql="ATTACH DATABASE '/etc/hosts' AS hosts", limit=1),
        call("query", sql="SELECT 1; DELETE FROM sales", limit=1),
        call("query", sql=FOR_EVER, limit=1),
    ],
    [call("query", sql="SELECT * FROM sales", limit=50), call("final_answer", answer="Eastmere, of course.")],
    call("query", sql=BEST, limit=10),
    call("final_answer", answer="Eastmere sold most in 2024; the rows above have the sums."),
]
