/*
 * Tests of a plugin on the machine where it is written, without a host.
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
    bool failed;            /* the rest is in `text`, which is the message */
    bool invalid_arguments; /* it failed, and the arguments are to blame */
    const char *text;       /* the text blocks, a line feed between them; "" without one */
    const char *structured; /* the structured content as JSON, or NULL */
    size_t count;           /* of the content blocks */
    const toolbay_result *result;
    const char *description; /* of a prompt, or NULL */
    const uint32_t *total;   /* of a completion, or NULL; and whether there is more */
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

/* Runs a tool with a JSON object. The schema is not checked: the host does that. */
toolbay_answer toolbay_test_call(const char *tool, const char *arguments);

/* Fills in a prompt. The arguments are a JSON object of strings, or NULL. Each
 * block is a message. */
toolbay_answer toolbay_test_prompt(const char *prompt, const char *arguments);

/* Reads the resource of a URI. Each block is an item, of kind "resource", and
 * `text` is the items' text; there are none if there is no such resource. */
toolbay_answer toolbay_test_read(const char *uri);

/* Completes an argument of a prompt or a variable of a template. `given` are the
 * arguments that are complete: a JSON object of strings, or NULL. Each block is a
 * value. */
toolbay_answer toolbay_test_complete(const char *target, const char *argument, const char *value, const char *given);

/* What the client answers from now on to the question with this key: its result
 * as JSON, such as {"action":"accept","content":{"yes":true}}. NULL: it cannot. */
void toolbay_test_answer(const char *key, const char *result);

/* The parameters with which the question of this key was asked last, as JSON;
 * NULL if it was not. */
const char *toolbay_test_asked(const char *key);

/* The resources that were reported as updated so far, a line each. */
const char *toolbay_test_updated(void);

/* The block at an index below `count`. */
toolbay_block toolbay_test_block(toolbay_answer answer, size_t index);

/* The schemas of a tool as JSON; NULL if there is none, or no such tool. */
const char *toolbay_test_input_schema(const char *tool);
const char *toolbay_test_output_schema(const char *tool);

/* Sets a key of the grant's [config]; NULL removes it. */
void toolbay_test_config(const char *key, const char *value);

/* What toolbay_cancelled answers from now on. */
void toolbay_test_cancel(bool cancelled);

/* What answers HTTP requests from now on; NULL, as at first, denies them all.
 * A body that is larger than the request's limit is refused as in a plugin. */
void toolbay_test_http(toolbay_http_response (*answer)(const toolbay_http_request *request));

/* What was logged so far, a line each: "info: working". */
const char *toolbay_test_log(void);

/* How far the last toolbay_progress was. */
double toolbay_test_progress(void);

#ifdef __cplusplus
}
#endif

#endif
