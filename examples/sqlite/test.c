#undef NDEBUG
#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "toolbay/toolbay_test.h"

static void equal(const char *got, const char *expected) {
    if (got && strcmp(got, expected) == 0) return;
    fprintf(stderr, "expected %s\ngot      %s\n", expected, got ? got : "nothing");
    assert(false);
}

// Runs the tool with arguments that have backquotes for double quotes.
static toolbay_answer ask(const char *arguments) {
    char json[500] = "";
    assert(strlen(arguments) < sizeof json);
    for (size_t i = 0; arguments[i]; i++) json[i] = arguments[i] == '`' ? '"' : arguments[i];
    return toolbay_test_call("query_sqlite", json);
}

static void make_database(void) {
    remove(FOLDER "/sales.db");
    sqlite3 *database;
    assert(sqlite3_open(FOLDER "/sales.db", &database) == SQLITE_OK);
    const char *sql = "CREATE TABLE sales (region TEXT, amount REAL, note BLOB);"
                      "INSERT INTO sales VALUES ('north', 0.5, x'00ff'), ('south', 3, NULL), ('café', 7, x'');";
    assert(sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(database);
    FILE *other = fopen(FOLDER "/other.db", "w");
    for (int i = 0; i < 100; i++) fputs("this is no database\n", other);
    fclose(other);
}

static void rows_are_returned(void) {
    equal(ask("{`file`: `sales.db`, `sql`: `SELECT * FROM sales`}").structured,
        "{\"columns\":[\"region\",\"amount\",\"note\"],\"rows\":[[\"north\",0.5,\"00ff\"],[\"south\",3,null],"
        "[\"café\",7,\"\"]],\"more\":false}");
    equal(ask("{`file`: `sales.db`, `sql`: `SELECT count(*) AS n, 9007199254740993 AS big FROM sales;`}").structured,
        "{\"columns\":[\"n\",\"big\"],\"rows\":[[3,9007199254740993]],\"more\":false}");
}

static void rows_beyond_the_limit_are_left_out(void) {
    equal(ask("{`file`: `sales.db`, `sql`: `SELECT amount FROM sales ORDER BY 1`, `limit`: 2}").structured,
        "{\"columns\":[\"amount\"],\"rows\":[[0.5],[3]],\"more\":true}");
}

static void nothing_is_changed(void) {
    const char *statements[] = {"DELETE FROM sales", "DROP TABLE sales", "PRAGMA user_version = 7",
        "ATTACH 'x.db' AS x", "INSERT INTO sales VALUES ('x', 1, NULL)", "CREATE TEMP TABLE t (a)", "VACUUM"};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        const toolbay_answer answer = ask(toolbay_format("{`file`: `sales.db`, `sql`: `%s`}", statements[i]).data);
        assert(answer.invalid_arguments);
        equal(answer.text, "only SELECT is possible: the database cannot be changed");
    }
}

static void what_is_wrong_is_said(void) {
    equal(ask("{`file`: `none.db`, `sql`: `SELECT 1`}").text, "none.db cannot be opened: unable to open database file");
    equal(ask("{`file`: `other.db`, `sql`: `SELECT * FROM a`}").text, "other.db is not a SQLite database");
    equal(ask("{`file`: `sales.db`, `sql`: `SELECT price FROM sales`}").text,
        "the statement is not valid: no such column: price");
    equal(ask("{`file`: `sales.db`, `sql`: `SELECT 1; SELECT 2`}").text,
        "write one statement without anything behind it");
    equal(ask("{`file`: `sales.db`, `sql`: ` -- nothing`}").text, "the statement is empty: write one SELECT statement");
    equal(ask("{`file`: `sales.db`, `sql`: `SELECT abs(-9223372036854775807 - 1)`}").text,
        "the query failed: integer overflow");
}

int main(void) {
    make_database();
    rows_are_returned();
    rows_beyond_the_limit_are_left_out();
    nothing_is_changed();
    what_is_wrong_is_said();
    puts("4 passed, 0 failed");
}
