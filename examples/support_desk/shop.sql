-- A small shop as its support desk sees it: orders, tickets, refunds, and a journal of everything that was read or changed.
CREATE TABLE orders (
    id       INTEGER PRIMARY KEY,
    customer TEXT NOT NULL,
    item     TEXT NOT NULL,
    total    INTEGER NOT NULL CHECK (total > 0),
    status   TEXT NOT NULL CHECK (status IN ('delivered', 'shipped', 'packed'))
);
CREATE TABLE tickets (
    id       INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders (id),
    problem  TEXT NOT NULL,
    status   TEXT NOT NULL CHECK (status IN ('open', 'waiting', 'solved'))
);
CREATE TABLE refunds (
    id       INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders (id),
    amount   INTEGER NOT NULL CHECK (amount > 0)
);
CREATE TABLE journal (
    id     INTEGER PRIMARY KEY,
    action TEXT NOT NULL,
    row_id INTEGER,
    detail TEXT
);

INSERT INTO orders VALUES
    (1007, 'Maria Lopez', 'coffee grinder', 40, 'delivered'),
    (1012, 'Maria Lopez', 'tea pot', 25, 'shipped'),
    (1021, 'John Smith', 'desk lamp', 35, 'delivered'),
    (1033, 'Li Wei', 'rain coat', 80, 'packed'),
    (1045, 'Emma Brown', 'wool blanket', 60, 'delivered'),
    (1058, 'Ahmed Khan', 'garden chair', 55, 'delivered'),
    (1060, 'Ahmed Khan', 'garden table', 120, 'delivered');
INSERT INTO tickets VALUES
    (31, 1007, 'The grinder arrived broken.', 'open'),
    (32, 1021, 'The lamp flickers.', 'open'),
    (33, 1045, 'The blanket has a hole.', 'open'),
    (34, 1060, 'A leg of the table is missing.', 'waiting');

-- Changes write themselves down, whoever makes them.
CREATE TRIGGER refund_made AFTER INSERT ON refunds BEGIN
    INSERT INTO journal (action, row_id, detail) VALUES ('refund', NEW.order_id, NEW.amount);
END;
CREATE TRIGGER ticket_changed AFTER UPDATE ON tickets BEGIN
    INSERT INTO journal (action, row_id, detail) VALUES ('update_ticket', NEW.id, OLD.status || ' -> ' || NEW.status);
END;
CREATE TRIGGER order_changed AFTER UPDATE ON orders BEGIN
    INSERT INTO journal (action, row_id, detail) VALUES ('change_order', NEW.id, NULL);
END;
