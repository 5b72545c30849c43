/*
 * Native tests of a plugin, without a host.
 *
 *     toolbay_answer answer = toolbay_test_call("greet", "{\"name\": \"Ada\"}");
 *     assert(strcmp(answer.text, "Hello, Ada.") == 0);
 *
 * A test is a separate program, built for your machine and not for WebAssembly.
 */
#ifndef TOOLBAY_TEST_H
#define TOOLBAY_TEST_H

#include "toolbay.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The outcome of a call. */
typedef struct {
    bool failed;            /* `text` is the message */
    bool invalid_arguments; /* it failed because of the arguments */
    const char *text;       /* the text blocks, separated by line feeds; "" if there are none */
    const char *structured; /* the structured content as JSON, or NULL */
    size_t count;           /* of the content blocks */
    const toolbay_result *result;
    const char *description; /* of a prompt, or NULL */
    const uint32_t *total;   /* of a completion, or NULL; and whether it has more values */
    bool more;
} toolbay_answer;

/* One block of a result. */
typedef struct {
    const char *kind; /* "text", "image", "audio", "resource_link" or "resource" */
    toolbay_string text, data;
    const char *mime_type, *uri, *name, *last_modified; /* or NULL */
    toolbay_role role;                                  /* of a message */
    const char *meta;                                   /* of an item of a resource, or NULL */
} toolbay_block;

/* Runs a tool with a JSON object. It does not check the schema: the host does that. */
toolbay_answer toolbay_test_call(const char *tool, const char *arguments);

/* Fills in a prompt. The arguments are a JSON object of strings, or NULL. Each
 * block is a message. */
toolbay_answer toolbay_test_prompt(const char *prompt, const char *arguments);

/* Reads the resource with a URI. Each block is an item, of kind "resource", and
 * `text` is the items' text. A resource that does not exist has no items. */
toolbay_answer toolbay_test_read(const char *uri);

/* Completes an argument of a prompt or a variable of a template. `given` are the
 * arguments that are complete: a JSON object of strings, or NULL. Each block is a
 * value. */
toolbay_answer toolbay_test_complete(const char *target, const char *argument, const char *value, const char *given);

/* Sets the client's answer to the question with this key: its result as JSON,
 * such as {"action":"accept","content":{"yes":true}}; NULL if it cannot answer. */
void toolbay_test_answer(const char *key, const char *result);

/* Returns the last parameters of the question with this key, as JSON; NULL if it
 * was not asked. */
const char *toolbay_test_asked(const char *key);

/* Returns the resources that were reported as updated so far, one per line. */
const char *toolbay_test_updated(void);

/* Returns the block at an index below `count`. */
toolbay_block toolbay_test_block(toolbay_answer answer, size_t index);

/* Return the schemas of a tool as JSON; NULL if there is no schema, or no such tool. */
const char *toolbay_test_input_schema(const char *tool);
const char *toolbay_test_output_schema(const char *tool);

/* Sets a key of the grant's [config]; NULL removes it. */
void toolbay_test_config(const char *key, const char *value);

/* Sets the result of toolbay_cancelled. */
void toolbay_test_cancel(bool cancelled);

/* Sets the function that responds to HTTP requests; NULL, the default, denies
 * all. As in a plugin, a body larger than the request's limit is refused. */
void toolbay_test_http(toolbay_http_response (*answer)(const toolbay_http_request *request));

/* Returns the log messages so far, one per line: "info: working". */
const char *toolbay_test_log(void);

/* Returns the value of the last toolbay_progress. */
double toolbay_test_progress(void);

#ifdef __cplusplus
}
#endif

#endif
