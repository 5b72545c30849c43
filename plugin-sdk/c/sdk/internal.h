/* Declarations that the SDK's files share. Not part of its API. */
#ifndef TOOLBAY_INTERNAL_H
#define TOOLBAY_INTERNAL_H

#include <stdarg.h>

#include "toolbay.h"

/* The names of a kind of block. */
typedef struct {
    const char *contract; /* in the contract */
    const char *mcp;      /* in MCP, and therefore in tests */
} block_names;

block_names toolbay_block_names(toolbay_block_kind kind);

/* One block of a result. A string without `data` is absent. */
typedef struct {
    toolbay_block_kind kind;
    toolbay_string text, data, mime_type, uri, name, title, description;
    const uint64_t *size;
    unsigned audience;
    double priority; /* negative is absent */
    toolbay_string last_modified;
    toolbay_role role;   /* of a message */
    toolbay_string meta; /* of an item of a resource */
} block;

typedef enum { OUTCOME_OUTPUT, OUTCOME_INVALID, OUTCOME_FAILED } outcome;

struct toolbay_result {
    outcome outcome;
    toolbay_string message; /* of a failure */
    block *blocks;
    size_t count, capacity;
    toolbay_string structured, meta;
    toolbay_string description; /* of a prompt */
    const uint32_t *total;      /* of a completion, and whether it has more values */
    bool more;
};

/* Arguments as text: NUL-terminated names and values. */
typedef struct {
    toolbay_setting *all;
    size_t count;
} toolbay_values;

/* A question in the contract's memory layout. */
typedef struct {
    toolbay_string key;
    uint8_t kind; /* a toolbay_question_kind */
    toolbay_string params;
    bool required;
} asked;

/* The tables of a plugin, except that of its tools. */
typedef struct {
    const toolbay_prompt *prompts;
    const toolbay_resource *resources;
    const toolbay_completion *completions;
    size_t prompt_count, resource_count, completion_count;
} offers;

/* Return new memory and a copy; never NULL. Do not pass it to free(). */
void *toolbay_allocate(size_t size);
void *toolbay_reallocate(void *memory, size_t size);
toolbay_string toolbay_copy(const void *data, size_t size);

/* Frees memory of toolbay_allocate, such as a string that the host wrote. */
void toolbay_release(toolbay_string memory);

/* The maximum size of the response body of this request, and the response for
 * a body that is larger. */
size_t toolbay_http_limit(const toolbay_http_request *request);
toolbay_http_response toolbay_http_too_large(size_t limit);

/* Returns a copy of the string, or the absent string for NULL. */
toolbay_string toolbay_copy_or_absent(const char *text);

toolbay_string toolbay_format_list(const char *format, va_list arguments);

bool toolbay_is_utf8(toolbay_string text);

/* Returns the text with U+FFFD instead of invalid UTF-8: the host refuses invalid
 * UTF-8. */
toolbay_string toolbay_utf8(toolbay_string text);

/* Ends the call because memory is exhausted. The JSON code calls it too. */
void toolbay_out_of_memory(void) __attribute__((noreturn));

/* The host, or its replacement in a test. A message without `data` is absent. */
void toolbay_host_log(toolbay_level level, toolbay_string message);
void toolbay_host_progress(double progress, double total, toolbay_string message);
void toolbay_host_resource_updated(toolbay_string uri);

/* Stores an answer for each question, or returns the error and its message. */
toolbay_reply toolbay_host_ask(const asked *questions, size_t count, toolbay_string *answers);

/* The purpose of a JSON Schema. */
typedef enum { SCHEMA_OF_ARGUMENTS, SCHEMA_OF_RESULT, SCHEMA_OF_FORM } schema_use;

/* Returns the JSON Schema of a type. */
toolbay_string toolbay_schema(const toolbay_type *type, schema_use use);

/* Writes the struct as a JSON object. */
void toolbay_encode(toolbay_writer *writer, const toolbay_type *type, const void *value);

/* Writes the value of one field of the struct. */
void toolbay_encode_field(toolbay_writer *writer, const toolbay_field *field, const void *value);

/* Reads a JSON object into the struct. Returns an error message, or the absent
 * string. */
toolbay_string toolbay_decode(const toolbay_type *type, const toolbay_json *json, void *value);

/* Return the schemas of a tool. The output schema may be absent. */
toolbay_string toolbay_input_schema(const toolbay_tool *tool);
toolbay_string toolbay_output_schema(const toolbay_tool *tool);

/* Finds the tool and runs it; never NULL. */
toolbay_result *toolbay_run(toolbay_string name, toolbay_string arguments);

/* Find the prompt, the resource or the completion and run it; never NULL. */
toolbay_result *toolbay_get_prompt(const char *name, toolbay_values values);
toolbay_result *toolbay_read_resource(const char *uri);
toolbay_result *toolbay_complete(
    bool of_template, const char *target, const char *argument, const char *value, toolbay_values given);

/* Returns the arguments that a struct describes, or those of the list. */
toolbay_argument *toolbay_arguments_of(
    const toolbay_type *type, const toolbay_argument *list, size_t list_count, size_t *count);

/* The first returns a message about an error in the tables, or the absent
 * string. The second checks the tables of this plugin, and ends the call on an
 * error. The host detects errors in a single definition and in names. */
toolbay_string toolbay_mistake(const offers *offers);
void toolbay_check_offers(void);

/* Return whether the URI has variables, and whether it has one with this name. */
bool toolbay_is_template(const char *uri);
bool toolbay_has_variable(const char *template, const char *name);

/* Returns whether the URI matches the template, and if so, stores the values of
 * its variables. */
bool toolbay_match_uri(const char *template, const char *uri, toolbay_values *values);

#endif
