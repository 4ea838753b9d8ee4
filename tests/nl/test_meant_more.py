"""Questions in a hurry, of databases in other styles: short names, camelCase, stars, many tables, one table of texts."""

from __future__ import annotations

import duckdb
import pytest
from nl.meant import asked, holding, not_holding

from uql.features.embedder import Embedder
from uql.nl.schema.discover import discover
from uql.nl.schema.join_paths import joins
from uql.nl.small.meaning.synonyms import in_its_words
from uql.sources.catalog import Catalog


def trade() -> duckdb.DuckDBPyConnection:
    """Names in camelCase behind tbl; the lines of an order have no key."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE tblCustomers AS SELECT i AS customerId, ['Acme', 'Globex', 'Initech', 'Umbra'][1 + i % 4] || ['', ' Ltd'][1 + i // 4] "
        "AS companyName, ['Mia Holt', 'Tom Reed'][1 + i % 2] AS contactName, ['Germany', 'France', 'Italy'][1 + i % 3] AS country, "
        "DATE '2019-02-01' + INTERVAL (i * 90) DAY AS signupDate, i % 3 > 0 AS isActive FROM range(8) t(i)"
    )
    con.execute(
        "CREATE TABLE tblProducts AS SELECT i AS productId, ['Chai', 'Tofu', 'Ikura', 'Stout'][1 + i % 4] || ' ' || i AS productName, "
        "['Beverages', 'Dairy', 'Seafood'][1 + i % 3] AS categoryName, (4.5 + i)::DECIMAL(10, 2) AS unitPrice, i % 5 = 0 AS discontinued "
        "FROM range(15) t(i)"
    )
    con.execute(
        "CREATE TABLE tblOrders AS SELECT i AS orderId, i % 7 AS customerId, DATE '2023-01-01' + INTERVAL (i * 4) DAY AS orderDate, "
        "CASE WHEN i % 9 > 0 THEN DATE '2023-01-03' + INTERVAL (i * 4) DAY END AS shippedDate, "
        "['open', 'shipped', 'cancelled'][1 + i % 3] AS orderStatus FROM range(150) t(i)"
    )
    con.execute(
        "CREATE TABLE tblOrderLines AS SELECT i % 150 AS orderId, (i * 5) % 14 AS productId, 1 + i % 9 AS qty, "
        "(10 + i)::DECIMAL(10, 2) AS lineAmt FROM range(400) t(i)"
    )
    con.execute(
        "CREATE TABLE tblComplaints AS SELECT i AS complaintId, i % 6 AS customerId, DATE '2024-01-01' + INTERVAL (i * 5) DAY AS receivedDate, "
        "['The last two deliveries came a week late and nobody in your office could tell me where the truck was.', "
        "'The bottles were broken when the parcel arrived and half of the content had run out over the goods.'][1 + i % 2] || i "
        "AS complaintText FROM range(60) t(i)"
    )
    return con


def star() -> duckdb.DuckDBPyConnection:
    """Dimensions around the facts; no text to be read."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE dim_product AS SELECT i AS product_key, ['Desk', 'Lamp', 'Rug'][1 + i % 3] || ' ' || i AS product_name, "
        "['Nordika', 'Urbano'][1 + i % 2] AS brand, ['furniture', 'lighting', 'textiles'][1 + i % 3] AS category FROM range(20) t(i)"
    )
    con.execute(
        "CREATE TABLE dim_store AS SELECT i AS store_key, ['Arcade', 'Old Town', 'Westend'][i] AS store_name, "
        "['Kiel', 'Bremen', 'Kiel'][i] AS city, 900 * i AS sq_ft FROM range(1, 4) t(i)"
    )
    con.execute(
        "CREATE TABLE fact_sales AS SELECT i AS sale_id, DATE '2022-01-01' + INTERVAL (i * 2) DAY AS sale_date, i % 19 AS product_key, "
        "1 + i % 3 AS store_key, 1 + i % 5 AS quantity, 20.5 + i AS revenue, 10.5 + i AS cost FROM range(500) t(i)"
    )
    return con


def staff() -> duckdb.DuckDBPyConnection:
    """Short names."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE dept AS SELECT 10 * i AS dept_no, ['Accounting', 'Research', 'Legal'][i] AS dept_name, "
        "['Boston', 'Dallas', 'Denver'][i] AS loc, 60000 * i AS budget FROM range(1, 4) t(i)"
    )
    con.execute(
        "CREATE TABLE emp AS SELECT i AS emp_no, ['Kim', 'Lee', 'Max'][1 + i % 3] AS fname, ['Avery', 'Blake'][1 + i % 2] AS lname, "
        "DATE '1960-01-01' + INTERVAL (i * 300) DAY AS dob, ['F', 'M'][1 + i % 2] AS gender, 10 + 10 * (i % 2) AS dept_no, "
        "['clerk', 'analyst', 'manager'][1 + i % 3] AS job, DATE '2005-01-01' + INTERVAL (i * 60) DAY AS hire_dt, 28000 + 977 * i AS sal, "
        "i % 3 = 0 AS is_remote FROM range(60) t(i)"
    )
    con.execute(
        "CREATE TABLE training AS SELECT i % 55 AS emp_no, ['first aid', 'excel'][1 + i % 2] AS course, 4 + i % 9 AS hrs, i % 5 > 0 AS passed "
        "FROM range(120) t(i)"
    )
    con.execute(
        "CREATE TABLE exit_interview AS SELECT i * 7 AS emp_no, DATE '2023-01-01' + INTERVAL (i * 9) DAY AS held, "
        "['She leaves because the pay is far below what other companies in the city offer for the same kind of work.', "
        "'The long commute and the lack of any way to work from home were what made her look for a new job.'][1 + i % 2] || i AS notes "
        "FROM range(8) t(i)"
    )
    return con


def desk() -> duckdb.DuckDBPyConnection:
    """Keys that are called as the table they point to, codes of countries, moments."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE customer AS SELECT i AS id, ['Northwind', 'Bluefin', 'Kestrel'][1 + i % 3] || ' ' || i AS name, "
        "['free', 'pro'][1 + i % 2] AS plan, ['US', 'DE', 'FR'][1 + i % 3] AS country_code FROM range(1, 13) t(i)"
    )
    con.execute(
        "CREATE TABLE agent AS SELECT i AS id, ['Ines', 'Joel', 'Kofi'][i] AS name, ['billing', 'technical', 'billing'][i] AS team "
        "FROM range(1, 4) t(i)"
    )
    con.execute(
        "CREATE TABLE ticket AS SELECT i AS id, 1 + i % 11 AS customer, 1 + i % 3 AS agent, ['crash', 'cancel plan'][1 + i % 2] AS subject, "
        "['Hello, I was charged twice this month and would like to have one of the two payments refunded, thank you.', "
        "'The app crashes each time I try to export a report as a file, I have reinstalled it but that did not help.', "
        "'Your new dashboard is wonderful, my whole team loves it and we would like to see dark mode as well.'][1 + i % 3] || i AS body, "
        "['open', 'closed'][1 + i % 2] AS status, ['low', 'urgent'][1 + i % 2] AS priority, ['email', 'chat', 'phone'][1 + i % 3] AS channel, "
        "TIMESTAMP '2024-01-01 08:15:00' + INTERVAL (i * 2) DAY AS created_at, 1 + i % 5 AS csat FROM range(150) t(i)"
    )
    return con


def letters() -> duckdb.DuckDBPyConnection:
    """One table of texts."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE emails AS SELECT i AS msg_id, ['anna.weiss@corp.com', 'bob.ruiz@corp.com'][1 + i % 2] AS sender, "
        "TIMESTAMP '2001-01-05 07:05:00' + INTERVAL (i * 3) DAY AS sent_at, ['inbox', 'archive'][1 + i % 2] AS folder, "
        "i % 4 = 0 AS has_attachment, ['Meeting', 'Contract', 'Merger'][1 + i % 3] AS subject, "
        "['Could we meet on Thursday afternoon to talk about the budget for next year? I would need about an hour.', "
        "'Please find attached the signed contract with Delta Power, the invoice will follow in the next week.', "
        "'I am disappointed with the way in which the merger was announced, half of us learned of it from the papers.'][1 + i % 3] || i AS body "
        "FROM range(120) t(i)"
    )
    return con


def college() -> duckdb.DuckDBPyConnection:
    """Thirteen tables, of which a question may need four."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE student AS SELECT i AS student_id, 'Ali ' || i AS name, ['physics', 'history'][1 + i % 2] AS major, "
        "2.5 + (i % 15) / 10 AS gpa FROM range(60) t(i);"
        "CREATE TABLE instructor AS SELECT i AS instructor_id, 'Gina ' || i AS name, ['PHY', 'HIS'][1 + i % 2] AS dept_code, "
        "40000 + 1700 * i AS salary FROM range(12) t(i);"
        "CREATE TABLE department AS SELECT ['PHY', 'HIS'][i] AS dept_code, ['Physics', 'History'][i] AS dept_name, i AS building_id "
        "FROM range(1, 3) t(i);"
        "CREATE TABLE building AS SELECT i AS building_id, ['Newton Hall', 'Tudor House'][i] AS building_name, 1900 + 30 * i AS built "
        "FROM range(1, 3) t(i);"
        "CREATE TABLE classroom AS SELECT 'R' || i AS room_no, 1 + i % 2 AS building_id, 20 + 10 * i AS capacity FROM range(8) t(i);"
        "CREATE TABLE course AS SELECT 'C' || i AS course_id, ['Optics', 'Genetics', 'World Wars', 'Zoology'][1 + i % 4] || ['', ' II'][1 + i // 4] "
        "AS title, 2 + i % 4 AS credits FROM range(8) t(i);"
        "CREATE TABLE section AS SELECT i AS section_id, 'C' || (i % 8) AS course_id, i % 11 AS instructor_id, 'R' || (i % 7) AS room_no, "
        "['spring', 'fall'][1 + i % 2] AS semester FROM range(30) t(i);"
        "CREATE TABLE enrollment AS SELECT (i * 7) % 58 AS student_id, i % 30 AS section_id, 1.0 + i % 4 AS grade FROM range(300) t(i);"
        "CREATE TABLE club AS SELECT i AS club_id, ['Chess', 'Rowing'][i] AS club_name, 20 * i AS fee FROM range(1, 3) t(i);"
        "CREATE TABLE club_member AS SELECT 1 + i % 2 AS club_id, i AS student_id FROM range(40) t(i);"
        "CREATE TABLE scholarship AS SELECT i AS scholarship_id, i * 2 AS student_id, 1000 + 70 * i AS amount, 'Fund ' || i % 3 AS sponsor "
        "FROM range(20) t(i);"
        "CREATE TABLE prerequisite AS SELECT 'C' || i AS course_id, 'C' || (i - 1) AS required_id FROM range(1, 4) t(i);"
        "CREATE TABLE evaluation AS SELECT i AS evaluation_id, i % 28 AS section_id, "
        "['The lectures were clear and lively, and the examples from everyday life made the difficult parts easy.', "
        "'Far too much homework for a course of three credits, and the exam had nothing to do with what was taught.'][1 + i % 2] || i "
        "AS comment FROM range(80) t(i)"
    )
    return con


DATABASES = {"trade": trade, "star": star, "staff": staff, "desk": desk, "letters": letters, "college": college}
MEANT = """
trade | top 5 customers by revenue | tblCustomers tblOrders tblOrderLines | GROUP BY companyName; SELECT sum(lineAmt); ORDER BY sum(lineAmt) DESC; LIMIT 5
trade | bottom 3 products by qty | tblProducts tblOrderLines | GROUP BY productName; SELECT sum(qty); ORDER BY sum(qty) ASC; LIMIT 3
trade | which products have no sales | tblProducts | WHERE without tblOrderLines; SELECT productName
trade | avg order amount by month in 2024 | tblOrders tblOrderLines | WHERE year(orderDate) = 2024; GROUP BY month(orderDate); SELECT avg(lineAmt)
trade | How many orders placed between March and May 2024 were cancelled? | tblOrders | WHERE orderStatus = 'cancelled' AND year(orderDate) = 2024 AND month(orderDate) >= 3 AND month(orderDate) <= 5; SELECT count(*)
trade | List products that are not discontinued, cheapest first | tblProducts | WHERE NOT discontinued; SELECT productName; ORDER BY unitPrice ASC
trade | Compare the revenue of Beverages and Dairy. | tblProducts tblOrderLines | WHERE categoryName IN ('Beverages', 'Dairy'); GROUP BY categoryName; SELECT sum(lineAmt)
trade | What is the most popular product category? | tblProducts tblOrderLines | GROUP BY categoryName; SELECT sum(qty); ORDER BY sum(qty) DESC; LIMIT 1
trade | Which country brings in the most revenue? | tblCustomers tblOrders tblOrderLines | GROUP BY country; SELECT sum(lineAmt); ORDER BY sum(lineAmt) DESC; LIMIT 1
trade | inactive customers by country | tblCustomers | WHERE NOT isActive; GROUP BY country; SELECT count(*)
trade | unshipped orders | tblOrders | WHERE shippedDate IS NULL; SELECT orderId
trade | Which customers have complained more than twice about late deliveries? | tblCustomers tblComplaints | WHERE ask('complained about late deliveries'); GROUP BY companyName; SELECT count(*); HAVING count(*) > 2
star | revenue by brand and quarter | dim_product fact_sales | GROUP BY brand, quarter(sale_date); SELECT sum(revenue)
star | quarterly revenue 2022 | fact_sales | WHERE year(sale_date) = 2022; GROUP BY quarter(sale_date); SELECT sum(revenue)
star | Which store has the lowest revenue? | dim_store fact_sales | GROUP BY store_name; SELECT sum(revenue); ORDER BY sum(revenue) ASC; LIMIT 1
star | Did Nordika sell more than Urbano in 2023? | dim_product fact_sales | WHERE brand IN ('Nordika', 'Urbano') AND year(sale_date) = 2023; GROUP BY brand; SELECT sum(quantity)
star | What is the median revenue per sale? | fact_sales | SELECT median(revenue)
star | Which stores in Kiel are larger than 1000 square feet? | dim_store | WHERE city = 'Kiel' AND sq_ft > 1000; SELECT store_name
star | Pie chart of quantity sold by category | dim_product fact_sales | GROUP BY category; SELECT sum(quantity); PLOT arc
star | how many lamps did we sell? | dim_product fact_sales | WHERE product_name LIKE '%lamp%'; SELECT sum(quantity)
staff | avg salary by department | dept emp | GROUP BY dept_name; SELECT avg(sal)
staff | Who earns the most in Research? | dept emp | WHERE dept_name = 'Research'; SELECT fname, lname; ORDER BY sal DESC; LIMIT 1
staff | Which employees were born after 1995? | emp | WHERE year(dob) > 1995; SELECT fname, lname
staff | Who was hired most recently? | emp | SELECT fname, lname; ORDER BY hire_dt DESC; LIMIT 1
staff | Which departments have no employees? | dept | WHERE without emp; SELECT dept_name
staff | In which year were most people hired? | emp | GROUP BY year(hire_dt); SELECT count(*); ORDER BY count(*) DESC; LIMIT 1
staff | How many training hours did each department complete? | dept emp training | GROUP BY dept_name; SELECT sum(hrs)
staff | Who failed the first aid course? | emp training | WHERE course = 'first aid' AND NOT passed; SELECT fname, lname
staff | Do men earn more than women? | emp | WHERE gender IN ('F', 'M'); GROUP BY gender; SELECT avg(sal)
staff | Which jobs pay less than 50000 on average? | emp | GROUP BY job; SELECT avg(sal); HAVING avg(sal) < 50000
staff | Bar chart of headcount per department | dept emp | GROUP BY dept_name; SELECT count(*); PLOT bar
staff | Who has worked here the longest? | emp | SELECT fname, lname; ORDER BY hire_dt ASC; LIMIT 1
desk | how many open tickets mention refunds | ticket | WHERE status = 'open' AND ask('mention refunds'); SELECT count(*)
desk | What do Joel's customers want? | agent ticket | WHERE name = 'Joel'; SELECT ask('What customers want') AS answer
desk | How many tickets from Germany came in by phone? | customer ticket | WHERE channel = 'phone' AND country_code = 'DE'; SELECT count(*)
desk | how many tickets were created on weekends? | ticket | WHERE weekend(created_at) = 'weekend'; SELECT count(*)
desk | Do more tickets come in on weekdays or at the weekend? | ticket | GROUP BY weekend(created_at); SELECT count(*); ORDER BY count(*) DESC
desk | Are more tickets created on weekdays or at weekends? | ticket | GROUP BY weekend(created_at); SELECT count(*); ORDER BY count(*) DESC; LIMIT 1
desk | weekday vs weekend tickets | ticket | GROUP BY weekend(created_at); SELECT count(*)
desk | average satisfaction of tickets created on a Saturday | ticket | WHERE weekday(created_at) = 'Saturday'; SELECT avg(csat)
desk | tickets created per week day | ticket | GROUP BY weekday(created_at); SELECT count(*)
desk | Which team handles the most urgent tickets? | agent ticket | WHERE priority = 'urgent'; GROUP BY team; SELECT count(*); ORDER BY count(*) DESC; LIMIT 1
desk | average satisfaction by channel | ticket | GROUP BY channel; SELECT avg(csat)
desk | Which plan has the most tickets about crashes? | customer ticket | WHERE ask('about crashes'); GROUP BY plan; SELECT count(*); ORDER BY count(*) DESC; LIMIT 1
desk | tickets that are neither about billing nor about crashes | ticket | WHERE ask('neither about billing nor about crashes'); SELECT id
letters | list emails that ask for a meeting sorted by date | emails | WHERE ask('ask for a meeting'); SELECT subject; ORDER BY sent_at ASC
letters | how many mails with attachments are in the archive? | emails | WHERE folder = 'archive' AND has_attachment; SELECT count(*)
letters | Who complains about the merger? | emails | WHERE ask('complains about the merger'); SELECT sender
letters | How many emails did Anna send in May 2001? | emails | WHERE sender LIKE '%Anna%' AND year(sent_at) = 2001 AND month(sent_at) = 5; SELECT count(*)
letters | Busiest day of the week for emails | emails | GROUP BY weekday(sent_at); SELECT count(*); ORDER BY count(*) DESC; LIMIT 1
letters | Summarize each email about the contract in a few words | emails | WHERE ask('about the contract'); SELECT subject, ask('Summarize email in a few words') AS answer
college | Which students are in the chess club? | student club_member club | WHERE club_name = 'Chess'; SELECT name
college | Who teaches Genetics? | instructor section course | WHERE title = 'Genetics'; SELECT name
college | What do students say about Optics? | section course evaluation | WHERE title = 'Optics'; SELECT ask('What students say about Optics') AS answer
college | Which courses are taught in Tudor House? | course section classroom building | WHERE building_name = 'Tudor House'; SELECT title
college | How many classrooms in Newton Hall hold more than 50 people? | building classroom | WHERE building_name = 'Newton Hall' AND capacity > 50; SELECT count(*)
college | Which instructor gets the most complaints about homework? | instructor section evaluation | WHERE ask('complaints about homework'); GROUP BY name; SELECT count(*); ORDER BY count(*) DESC; LIMIT 1
trade | which products cost less than 15 | tblProducts | WHERE unitPrice < 15; SELECT productName
trade | products with a price of at least 15 | tblProducts | WHERE unitPrice >= 15; SELECT productName
"""
NOT_MEANT = """
trade | top 5 customers by revenue | tblCustomers | SELECT companyName; ORDER BY signupDate DESC; LIMIT 5
trade | List products that are not discontinued, cheapest first | tblProducts | SELECT productName; ORDER BY unitPrice ASC
star | Which store has the lowest revenue? | dim_store fact_sales | SELECT store_name; ORDER BY revenue ASC; LIMIT 1
star | quarterly revenue 2022 | fact_sales | WHERE year(sale_date) = 2022; SELECT sum(revenue)
staff | Who earns the most in Research? | dept emp | WHERE dept_name = 'Research'; GROUP BY lname; SELECT count(*); ORDER BY count(*) DESC; LIMIT 1
staff | Who failed the first aid course? | emp training | WHERE course = 'first aid' AND passed; SELECT fname, lname
letters | how many mails with attachments are in the archive? | emails | WHERE folder = 'archive'; SELECT count(*)
trade | How many active customers do we have? | tblCustomers | WHERE isActive; SELECT companyName
trade | How many open orders are there? | tblOrders | WHERE orderStatus <> 'open'; SELECT count(*)
trade | which products have no sales | tblProducts | SELECT productName
staff | avg salary by department | dept emp | GROUP BY dept_name; SELECT count(*)
desk | What is the average csat of the billing team? | agent ticket | WHERE team = 'billing'; SELECT max(csat)
trade | which products cost less than 15 | tblProducts | WHERE unitPrice > 15; SELECT productName
trade | which products cost less than 15 | tblProducts | WHERE unitPrice = 15; SELECT productName
trade | products with a price of at least 15 | tblProducts | WHERE unitPrice < 15; SELECT productName
"""


@pytest.fixture(scope="module")
def catalogs() -> dict[str, Catalog]:
    return {name: Catalog(make()) for name, make in DATABASES.items()}


test_the_grammar_of_a_question_holds_what_it_means = holding(DATABASES, MEANT)


test_it_does_not_hold_what_the_question_excludes = not_holding(DATABASES, NOT_MEANT)


def test_what_is_reckoned_from_columns_is_said_not_to_be_there(
    catalogs: dict[str, Catalog], embedder: Embedder
) -> None:
    for database, question in (
        ("trade", "What is the profit per category?"),
        ("trade", "Which product is the most profitable?"),
        ("star", "What is the profit margin per category?"),
    ):
        _, narrow = asked(question, catalogs[database], embedder)
        assert narrow.absent and narrow.absent[0] in ("profit", "profitable", "margin")


def test_a_question_is_said_in_the_words_of_a_database(catalogs: dict[str, Catalog]) -> None:
    for database, question, wanted in (
        ("trade", "Which clients made no purchases?", "Which customers made no orders?"),
        ("staff", "How many people work in each dept?", "How many employees work in each department?"),
        ("star", "monthly revenue of the stores", "revenue per month of the stores"),
        ("letters", "mails that came more than twice", "emails that came more than two times"),
    ):
        assert in_its_words(question, discover(question, catalogs[database], None)) == wanted


def test_joins_of_four_tables_are_found_among_thirteen(catalogs: dict[str, Catalog]) -> None:
    scope = discover("", catalogs["college"], None)
    found = {frozenset(tables) for tables, _ in joins(scope)}
    assert frozenset(("course", "section", "classroom", "building")) in found and len(scope.sources) == 13
