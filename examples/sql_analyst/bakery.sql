-- A bakery with three branches: what was sold where, day by day, in the year 2024.
CREATE TABLE branches (id INTEGER PRIMARY KEY, town TEXT NOT NULL, opened INTEGER NOT NULL);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, cents INTEGER NOT NULL);
CREATE TABLE sales (
    day        TEXT NOT NULL,
    branch_id  INTEGER NOT NULL REFERENCES branches (id),
    product_id INTEGER NOT NULL REFERENCES products (id),
    pieces     INTEGER NOT NULL
);
INSERT INTO branches VALUES (1, 'Eastmere', 1998), (2, 'Northgate', 2011), (3, 'Westbrook', 2019);
INSERT INTO products VALUES (1, 'rye bread', 420), (2, 'roll', 45), (3, 'plum cake', 310), (4, 'pretzel', 90);
INSERT INTO sales
    WITH RECURSIVE days (day) AS (SELECT '2024-01-01' UNION ALL SELECT date(day, '+1 day') FROM days WHERE day < '2024-12-31')
    SELECT day, branches.id, products.id, 20 + (strftime('%j', day) * (branches.id + 6) + products.id * 31) % (90 - 15 * branches.id)
    FROM days, branches, products;
