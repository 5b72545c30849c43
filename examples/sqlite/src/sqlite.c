// Queries of SQLite databases in one folder, which the operator mounts read-only.

#include <sqlite3.h>
#include <string.h>

#include "toolbay/toolbay.h"

#ifndef FOLDER
#define FOLDER "/data"
#endif

struct query {
    const char *file, *sql;
    unsigned limit;
};

static const struct query defaults = {.limit = 100};

static const toolbay_type query_type = TOOLBAY_TYPE_WITH_DEFAULTS(struct query, &defaults,
    TOOLBAY_FIELD(struct query, file, "The name of the database file.", .pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]*$"),
    TOOLBAY_FIELD(struct query, sql, "One SELECT statement. To see the tables: SELECT sql FROM sqlite_schema",
        .length = {1, 10000}),
    TOOLBAY_FIELD(struct query, limit, "The most rows that are returned.", .range = {1, 1000}, .optional = true));

static const char output_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"columns\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"rows\":{\"type\":\"array\",\"items\":{\"type\":\"array\"},\"description\":\"Blobs are hexadecimal.\"},"
    "\"more\":{\"type\":\"boolean\",\"description\":\"Whether there are more rows than were asked for.\"}},"
    "\"required\":[\"columns\",\"rows\",\"more\"]}";

// A statement may only read. The mount also enforces this, but this check gives the model a better message.
static int authorize(void *, int action, const char *, const char *function, const char *, const char *) {
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return function && strcmp(function, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default:
        return SQLITE_DENY;
    }
}

static void write_text(toolbay_writer *writer, const char *text) {
    toolbay_write_string(writer, toolbay_str(text));
}

static void write_value(toolbay_writer *writer, sqlite3_stmt *statement, int column) {
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
        toolbay_write_null(writer);
        break;
    case SQLITE_INTEGER:
        toolbay_write_raw(writer, toolbay_format("%lld", sqlite3_column_int64(statement, column)));
        break;
    case SQLITE_FLOAT:
        toolbay_write_number(writer, sqlite3_column_double(statement, column));
        break;
    case SQLITE_BLOB: {
        const unsigned char *bytes = sqlite3_column_blob(statement, column);
        toolbay_string hex = toolbay_str("");
        sqlite3_str *text = sqlite3_str_new(NULL);
        for (int i = 0; i < sqlite3_column_bytes(statement, column); i++) sqlite3_str_appendf(text, "%02x", bytes[i]);
        if (sqlite3_str_length(text)) hex = toolbay_str(sqlite3_str_finish(text));
        toolbay_write_string(writer, hex);
        break;
    }
    default: {
        const char *text = (const char *)sqlite3_column_text(statement, column);
        toolbay_write_string(writer, (toolbay_string){text, (size_t)sqlite3_column_bytes(statement, column)});
    }
    }
}

// Writes the rows up to the limit. Returns SQLite's result code of the statement.
static int write_rows(toolbay_writer *writer, sqlite3_stmt *statement, unsigned limit) {
    const int columns = sqlite3_column_count(statement);
    toolbay_write_key(writer, toolbay_str("columns"));
    toolbay_write_array(writer);
    for (int i = 0; i < columns; i++) write_text(writer, sqlite3_column_name(statement, i));
    toolbay_write_array_end(writer);
    toolbay_write_key(writer, toolbay_str("rows"));
    toolbay_write_array(writer);
    int step = sqlite3_step(statement);
    for (unsigned row = 0; step == SQLITE_ROW && row < limit; row++, step = sqlite3_step(statement)) {
        toolbay_write_array(writer);
        for (int i = 0; i < columns; i++) write_value(writer, statement, i);
        toolbay_write_array_end(writer);
    }
    toolbay_write_array_end(writer);
    toolbay_write_key(writer, toolbay_str("more"));
    toolbay_write_raw(writer, toolbay_str(step == SQLITE_ROW ? "true" : "false"));
    return step;
}

static toolbay_result *query(const void *arguments) {
    const struct query *args = arguments;
    sqlite3 *database;
    // Immutable: the file does not change during the call, so SQLite needs neither locks nor a journal.
    const toolbay_string path = toolbay_format("file:%s/%s?mode=ro&immutable=1", FOLDER, args->file);
    int code = sqlite3_open_v2(path.data, &database, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    if (code != SQLITE_OK) return toolbay_invalid("%s cannot be opened: %s", args->file, sqlite3_errmsg(database));
    sqlite3_set_authorizer(database, authorize, NULL);

    sqlite3_stmt *statement;
    const char *rest;
    code = sqlite3_prepare_v2(database, args->sql, -1, &statement, &rest);
    // The authorizer is called for VACUUM only when the statement runs.
    if (code == SQLITE_AUTH || (code == SQLITE_OK && statement && !sqlite3_stmt_readonly(statement))) {
        return toolbay_invalid("only SELECT is possible: the database cannot be changed");
    }
    if (code == SQLITE_NOTADB) return toolbay_invalid("%s is not a SQLite database", args->file);
    if (code != SQLITE_OK) return toolbay_invalid("the statement is not valid: %s", sqlite3_errmsg(database));
    if (!statement) return toolbay_invalid("the statement is empty: write one SELECT statement");
    if (!toolbay_blank(rest)) return toolbay_invalid("write one statement without anything behind it");

    toolbay_writer *writer = toolbay_writer_new();
    toolbay_write_object(writer);
    code = write_rows(writer, statement, args->limit);
    toolbay_write_object_end(writer);
    if (code != SQLITE_ROW && code != SQLITE_DONE) return toolbay_failed("the query failed: %s", sqlite3_errmsg(database));
    return toolbay_set_structured_json(toolbay_output(), toolbay_written(writer));
}

TOOLBAY_PLUGIN({
    .name = "query_sqlite",
    .title = "Query a SQLite database",
    .description = "Runs one SELECT statement on a SQLite database and returns the rows. The database cannot be changed.",
    .arguments = &query_type,
    .output_schema = output_schema,
    .call = query,
    .read_only = TOOLBAY_YES,
    .idempotent = TOOLBAY_YES,
})
