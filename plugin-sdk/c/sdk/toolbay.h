/*
 * Toolbay plugins in C.
 *
 * A plugin is a table of tools. Each has a name, a description, a type for its
 * arguments and a function. The SDK generates the JSON Schemas from the types,
 * and passes a struct to the function:
 *
 *     struct greet { const char *name; bool excited; };
 *
 *     static const toolbay_type greet_type = TOOLBAY_TYPE(struct greet,
 *         TOOLBAY_FIELD(struct greet, name, "Who to greet."),
 *         TOOLBAY_FIELD(struct greet, excited, "Whether to shout.", .optional = true));
 *
 *     static toolbay_result *greet(const void *arguments) {
 *         const struct greet *args = arguments;
 *         return toolbay_text(args->excited ? "HELLO, %s!" : "Hello, %s.", args->name);
 *     }
 *
 *     TOOLBAY_PLUGIN({
 *         .name = "greet",
 *         .description = "Greets somebody by name.",
 *         .arguments = &greet_type,
 *         .call = greet,
 *         .read_only = TOOLBAY_YES,
 *     })
 *
 * Memory: every call runs in its own instance, which ends with the call. You
 * need not free anything. What the SDK returns to you is valid until the call
 * ends, and the SDK copies what you pass to it.
 */
#ifndef TOOLBAY_H
#define TOOLBAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOOLBAY_PRINTF(TEXT, FIRST) __attribute__((format(printf, TEXT, FIRST)))

/* ---------------------------------------------------------------- strings */

/* A text in UTF-8 with its length in bytes. It may contain NUL. A string that
 * the SDK returns is also NUL-terminated. */
typedef struct {
    const char *data;
    size_t size;
} toolbay_string;

/* JSON as text: a field of this type can have any JSON value. */
typedef struct {
    toolbay_string text;
} toolbay_raw;

/* A parsed JSON value, which is immutable. Its functions are below. */
typedef struct toolbay_json toolbay_json;

/* Returns the string that ends at the first NUL; for NULL, the empty string. */
toolbay_string toolbay_str(const char *text);

/* Formats like printf, into new memory. */
toolbay_string toolbay_format(const char *format, ...) TOOLBAY_PRINTF(1, 2);

/* Returns whether the text is empty or only white space. */
bool toolbay_blank(const char *text);

/* ------------------------------------------------------------------ types */

/* The JSON type of a field. TOOLBAY_FIELD derives it from the C type. */
typedef enum {
    TOOLBAY_KIND_BOOLEAN,
    TOOLBAY_KIND_INTEGER,  /* signed, of any size */
    TOOLBAY_KIND_NATURAL,  /* unsigned, of any size */
    TOOLBAY_KIND_NUMBER,   /* float or double */
    TOOLBAY_KIND_TEXT,     /* const char *: cannot hold U+0000 */
    TOOLBAY_KIND_STRING,   /* toolbay_string */
    TOOLBAY_KIND_RAW,      /* toolbay_raw */
    TOOLBAY_KIND_OBJECT    /* a struct with a toolbay_type */
} toolbay_kind;

/* Minimum and maximum; {0, 0} sets none. */
typedef struct {
    double least, greatest;
} toolbay_range;

/* One member of an object. Define it with one of the four macros below. After
 * the description, they accept any of the members from `optional` on. */
typedef struct {
    const char *name;
    const char *description;
    toolbay_kind kind;
    size_t offset;
    size_t size;                     /* of one value, in bytes */
    const struct toolbay_type *type; /* of an object */
    bool list;                       /* the field points to an array of values ... */
    size_t count_offset;             /* ... the offset of a size_t with their number */
    bool pointer;                    /* the field points to one value, or is NULL */

    bool optional;                   /* may be left out: then the field has its default */
    bool nullable;                   /* a NULL pointer or string is written as null */
    const char *title;               /* a display name */
    const char *const *choices;      /* the only valid texts, NULL-terminated */
    toolbay_range range;             /* of a number */
    toolbay_range length;            /* of a text in characters, or of a list in values */
    const char *pattern;             /* that a text must match */
    const char *format;              /* of a text: email, uri, date or date-time */
} toolbay_field;

/* A struct as a JSON object. */
typedef struct toolbay_type {
    size_t size;
    const toolbay_field *fields;
    size_t count;
    /* The struct with the values of fields that are left out. The schema
         * has them as defaults. Without this struct, they are zero. */
    const void *defaults;
} toolbay_type;

/* Describes STRUCT by the fields that follow. */
#define TOOLBAY_TYPE(STRUCT, ...) TOOLBAY_TYPE_WITH_DEFAULTS(STRUCT, NULL, __VA_ARGS__)

/* Like TOOLBAY_TYPE, with defaults: DEFAULTS is a `const STRUCT *`. */
#define TOOLBAY_TYPE_WITH_DEFAULTS(STRUCT, DEFAULTS, ...)                                \
    {                                                                                    \
        .size = sizeof(STRUCT), .fields = (const toolbay_field[]){__VA_ARGS__},          \
        .count = sizeof((const toolbay_field[]){__VA_ARGS__}) / sizeof(toolbay_field),   \
        .defaults = (DEFAULTS),                                                          \
    }

/* A member of type bool, any integer, float, double, const char *,
 * toolbay_string or toolbay_raw. A const pointer to a bool, int, long, long long
 * or double is NULL when the member is left out, so it is always optional. */
#define TOOLBAY_FIELD(STRUCT, MEMBER, DESCRIPTION, ...)                                  \
    {                                                                                    \
        .name = #MEMBER, .description = (DESCRIPTION),                                   \
        .kind = TOOLBAY_KIND_OF(((STRUCT *)0)->MEMBER),                                  \
        .offset = offsetof(STRUCT, MEMBER),                                              \
        .size = TOOLBAY_SIZE_OF(((STRUCT *)0)->MEMBER),                                  \
        .pointer = TOOLBAY_IS_POINTER(((STRUCT *)0)->MEMBER), __VA_ARGS__                \
    }

/* MEMBER points to COUNT (a size_t in the same struct) of such values. */
#define TOOLBAY_LIST(STRUCT, MEMBER, COUNT, DESCRIPTION, ...)                            \
    {                                                                                    \
        .name = #MEMBER, .description = (DESCRIPTION),                                   \
        .kind = TOOLBAY_KIND_OF(*((STRUCT *)0)->MEMBER),                                 \
        .offset = offsetof(STRUCT, MEMBER),                                              \
        .size = sizeof(*((STRUCT *)0)->MEMBER), .list = true,                            \
        .count_offset = offsetof(STRUCT, COUNT), __VA_ARGS__                             \
    }

/* MEMBER is a struct that TYPE describes. */
#define TOOLBAY_OBJECT(STRUCT, MEMBER, TYPE, DESCRIPTION, ...)                           \
    {                                                                                    \
        .name = #MEMBER, .description = (DESCRIPTION), .kind = TOOLBAY_KIND_OBJECT,      \
        .offset = offsetof(STRUCT, MEMBER), .size = sizeof(((STRUCT *)0)->MEMBER),       \
        .type = (TYPE), __VA_ARGS__                                                      \
    }

/* MEMBER points to COUNT structs that TYPE describes. */
#define TOOLBAY_OBJECTS(STRUCT, MEMBER, COUNT, TYPE, DESCRIPTION, ...)                   \
    {                                                                                    \
        .name = #MEMBER, .description = (DESCRIPTION), .kind = TOOLBAY_KIND_OBJECT,      \
        .offset = offsetof(STRUCT, MEMBER), .size = sizeof(*((STRUCT *)0)->MEMBER),      \
        .type = (TYPE), .list = true, .count_offset = offsetof(STRUCT, COUNT),           \
        __VA_ARGS__                                                                      \
    }

/* Uses the address, so that an array does not decay to a pointer. */
#define TOOLBAY_KIND_OF(VALUE)                                                           \
    _Generic(&(VALUE),                                                                   \
        bool *: TOOLBAY_KIND_BOOLEAN,                                                    \
        const bool **: TOOLBAY_KIND_BOOLEAN,                                             \
        signed char *: TOOLBAY_KIND_INTEGER,                                             \
        short *: TOOLBAY_KIND_INTEGER,                                                   \
        int *: TOOLBAY_KIND_INTEGER,                                                     \
        long *: TOOLBAY_KIND_INTEGER,                                                    \
        long long *: TOOLBAY_KIND_INTEGER,                                               \
        const int **: TOOLBAY_KIND_INTEGER,                                              \
        const long **: TOOLBAY_KIND_INTEGER,                                             \
        const long long **: TOOLBAY_KIND_INTEGER,                                        \
        unsigned char *: TOOLBAY_KIND_NATURAL,                                           \
        unsigned short *: TOOLBAY_KIND_NATURAL,                                          \
        unsigned *: TOOLBAY_KIND_NATURAL,                                                \
        unsigned long *: TOOLBAY_KIND_NATURAL,                                           \
        unsigned long long *: TOOLBAY_KIND_NATURAL,                                      \
        float *: TOOLBAY_KIND_NUMBER,                                                    \
        double *: TOOLBAY_KIND_NUMBER,                                                   \
        const double **: TOOLBAY_KIND_NUMBER,                                            \
        const char **: TOOLBAY_KIND_TEXT,                                                \
        toolbay_string *: TOOLBAY_KIND_STRING,                                           \
        toolbay_raw *: TOOLBAY_KIND_RAW)

#define TOOLBAY_IS_POINTER(VALUE)                                                        \
    _Generic(&(VALUE),                                                                   \
        const bool **: true,                                                             \
        const int **: true,                                                              \
        const long **: true,                                                             \
        const long long **: true,                                                        \
        const double **: true,                                                           \
        default: false)

#define TOOLBAY_SIZE_OF(VALUE)                                                           \
    _Generic(&(VALUE),                                                                   \
        const bool **: sizeof(bool),                                                     \
        const int **: sizeof(int),                                                       \
        const long **: sizeof(long),                                                     \
        const long long **: sizeof(long long),                                           \
        const double **: sizeof(double),                                                 \
        default: sizeof(VALUE))

/* ------------------------------------------------------------------ tools */

/* The outcome of a call. */
typedef struct toolbay_result toolbay_result;

/* A hint by which the client decides whether to ask its user first. */
typedef enum { TOOLBAY_UNSAID, TOOLBAY_YES, TOOLBAY_NO } toolbay_hint;

/* An icon that a client can show with the tool. */
typedef struct {
    const char *src;          /* an https: or data: URI */
    const char *mime_type;    /* if src does not imply it; or NULL */
    const char *const *sizes; /* such as "48x48" or "any", NULL-terminated; or NULL */
    const char *theme;        /* the background for which it is designed: "light", "dark", or NULL for both */
} toolbay_icon;

/* One tool. */
typedef struct {
    const char *name;              /* the name that clients call: A-Z a-z 0-9 _ - . */
    const char *title;             /* a display name; or NULL */
    const char *description;       /* what it does and when to use it, written for the model */
    const toolbay_type *arguments; /* NULL if it has none */
    const toolbay_type *structured; /* of the structured content; NULL if it returns none */
    toolbay_result *(*call)(const void *arguments); /* gets the struct of `arguments`; may return NULL for no content */

    toolbay_hint read_only;        /* it changes nothing */
    toolbay_hint destructive;      /* it may delete or overwrite data, not only add to it */
    toolbay_hint idempotent;       /* repeating a call has no further effect */
    toolbay_hint open_world;       /* it interacts with external entities, such as the web */

    const toolbay_icon *icon;      /* or NULL */
    const char *meta;              /* a JSON object for the definition's _meta; or NULL */

    /* For schemas that no struct can describe, as JSON: they replace those of
         * `arguments` and `structured`. `input_schema` requires `call_json`, which
         * gets the arguments as JSON, and `context`. */
    const char *input_schema;
    const char *output_schema;
    toolbay_result *(*call_json)(const void *context, toolbay_string arguments);
    const void *context;
} toolbay_tool;

/* The tools of this plugin; TOOLBAY_PLUGIN({...}, {...}) defines it. A plugin
 * without it has none. */
const toolbay_tool *toolbay_plugin(size_t *count);

#define TOOLBAY_PLUGIN(...)                                                              \
    static const toolbay_tool toolbay_tools_[] = {__VA_ARGS__};                          \
    const toolbay_tool *toolbay_plugin(size_t *toolbay_count_) {                         \
        *toolbay_count_ = sizeof toolbay_tools_ / sizeof *toolbay_tools_;                \
        return toolbay_tools_;                                                           \
    }

/* ------------------------------------------------- prompts and resources */

/* A name and its value, of [config] or of an argument that is given as text. */
typedef struct {
    toolbay_string key, value;
} toolbay_setting;

/* An argument that is not in a struct. */
typedef struct {
    const char *name;
    const char *title;       /* or NULL */
    const char *description; /* or NULL */
    bool required;
} toolbay_argument;

/* One prompt: a text that the user chooses, which becomes the beginning of a
 * conversation. Each block of the result is one message. Its author is the
 * user, unless toolbay_set_role sets another:
 *
 *     static toolbay_result *greeting(const void *arguments) {
 *         const struct greeting *args = arguments;
 *         return toolbay_text("Greet %s.", args->name);
 *     }
 */
typedef struct {
    const char *name;              /* the name by which clients get it: A-Z a-z 0-9 _ - . */
    const char *title;             /* a display name; or NULL */
    const char *description;       /* its purpose, written for people */
    const toolbay_type *arguments; /* texts, numbers and booleans; NULL if it has none. Clients send all of
                                    * them as text, which is not checked against choices, ranges and patterns */
    toolbay_result *(*get)(const void *arguments); /* gets the struct of `arguments` */
    const toolbay_icon *icon;      /* or NULL */
    const char *meta;              /* a JSON object for the definition's _meta; or NULL */

    /* For arguments that are not in a struct: these members replace `arguments` and `get`. */
    const toolbay_argument *argument_list;
    size_t argument_count;
    toolbay_result *(*get_values)(const void *context, const toolbay_setting *values, size_t count);
    const void *context;
} toolbay_prompt;

/* One resource, which clients read by its URI; or many, if the URI is a
 * template. In a template, {name} stands for one or more characters other than
 * / ? # and {+name} for any. The function gets the value of {name} decoded, so
 * that %20 is a space, and that of {+name} unchanged.
 *
 * Build the result with toolbay_text or toolbay_add_binary_resource, or with
 * several of them for several items. An item without a URI gets the URI that
 * was read, and an item without a MIME type gets that of the table. NULL, or a
 * result without blocks, means that there is no such resource. */
typedef struct {
    const char *uri;               /* such as notes://all, or notes://{folder}/{id} */
    const char *name;
    const char *title;             /* a display name; or NULL */
    const char *description;       /* its content, described for the model; or NULL */
    const char *mime_type;         /* or NULL */
    const toolbay_type *variables; /* of a template: texts, numbers and booleans with the names of variables; or NULL */
    toolbay_result *(*read)(const char *uri, const void *variables); /* gets the struct of `variables` */

    const uint64_t *size;          /* in bytes, not of a template; or NULL */
    unsigned audience;             /* a sum of TOOLBAY_FOR_...; 0 is everyone */
    const double *priority;        /* from 0 (optional) to 1 (required); or NULL */
    const char *last_modified;     /* in ISO 8601, not of a template; or NULL */
    const toolbay_icon *icon;      /* or NULL */
    const char *meta;              /* a JSON object for the definition's _meta; or NULL */

    /* For variables that are not in a struct: these members replace `variables` and `read`. */
    const toolbay_argument *argument_list;
    size_t argument_count;
    toolbay_result *(*read_values)(
        const void *context, const char *uri, const toolbay_setting *values, size_t count);
    const void *context;
} toolbay_resource;

/* An argument that a user is typing. */
typedef struct {
    const char *value;            /* the text that was typed so far */
    const toolbay_setting *given; /* the arguments that are complete */
    size_t given_count;
    const void *context;          /* that of the table */
} toolbay_typed;

/* Suggests values for an argument of a prompt or for a variable of a template.
 * Each text of the result is one value, the best first. toolbay_beginning_with
 * returns such a result. NULL means no values. */
typedef struct {
    const char *prompt;   /* the name of the prompt ... */
    const char *resource; /* ... or the template */
    const char *argument; /* the name of the argument, or of the variable */
    toolbay_result *(*complete)(const toolbay_typed *typed);
    const void *context;
} toolbay_completion;

/* Returns the value of an argument that is already complete, or NULL. */
const char *toolbay_given(const toolbay_typed *typed, const char *name);

/* The prompts, resources and completions of this plugin. Each macro defines one
 * of these functions, and makes the plugin export that interface of the contract:
 *
 *     TOOLBAY_PROMPTS({...}, {...})
 *     TOOLBAY_RESOURCES({...}, {...})
 *     TOOLBAY_COMPLETIONS({...}, {...})
 */
const toolbay_prompt *toolbay_prompts(size_t *count);
const toolbay_resource *toolbay_resources(size_t *count);
const toolbay_completion *toolbay_completions(size_t *count);

#define TOOLBAY_PROMPTS(...)                                                             \
    static const toolbay_prompt toolbay_prompts_[] = {__VA_ARGS__};                      \
    const toolbay_prompt *toolbay_prompts(size_t *toolbay_count_) {                      \
        *toolbay_count_ = sizeof toolbay_prompts_ / sizeof *toolbay_prompts_;            \
        return toolbay_prompts_;                                                         \
    }                                                                                    \
    TOOLBAY_EXPORT_PROMPTS

#define TOOLBAY_RESOURCES(...)                                                           \
    static const toolbay_resource toolbay_resources_[] = {__VA_ARGS__};                  \
    const toolbay_resource *toolbay_resources(size_t *toolbay_count_) {                  \
        *toolbay_count_ = sizeof toolbay_resources_ / sizeof *toolbay_resources_;        \
        return toolbay_resources_;                                                       \
    }                                                                                    \
    TOOLBAY_EXPORT_RESOURCES

#define TOOLBAY_COMPLETIONS(...)                                                         \
    static const toolbay_completion toolbay_completions_[] = {__VA_ARGS__};              \
    const toolbay_completion *toolbay_completions(size_t *toolbay_count_) {              \
        *toolbay_count_ = sizeof toolbay_completions_ / sizeof *toolbay_completions_;    \
        return toolbay_completions_;                                                     \
    }                                                                                    \
    TOOLBAY_EXPORT_COMPLETIONS

/* The exports, for a plugin that defines the functions above itself. The
 * exports determine which interfaces a plugin has, so they cannot be in the
 * SDK's own files, which are part of every plugin. */
#ifdef __wasm__

const void *toolbay_abi_list_prompts(void);
const void *toolbay_abi_get_prompt(const char *, size_t, const toolbay_setting *, size_t);
const void *toolbay_abi_list_resources(void);
const void *toolbay_abi_list_templates(void);
const void *toolbay_abi_read_resource(const char *, size_t);
const void *toolbay_abi_complete(
    int32_t, const char *, size_t, const char *, size_t, const char *, size_t, const toolbay_setting *, size_t);

#define TOOLBAY_EXPORT_(NAME, FUNCTION, PARAMETERS, ARGUMENTS)                           \
    TOOLBAY_C_ __attribute__((export_name("toolbay:plugin/" NAME)))                      \
    const void *toolbay_export_##FUNCTION PARAMETERS {                                   \
        return toolbay_abi_##FUNCTION ARGUMENTS;                                         \
    }

#define TOOLBAY_EXPORT_PROMPTS                                                           \
    TOOLBAY_EXPORT_("prompts@0.2.0#list-prompts", list_prompts, (void), ())              \
    TOOLBAY_EXPORT_("prompts@0.2.0#get-prompt", get_prompt,                              \
        (const char *name, size_t name_size, const toolbay_setting *values, size_t count), \
        (name, name_size, values, count))

#define TOOLBAY_EXPORT_RESOURCES                                                         \
    TOOLBAY_EXPORT_("resources@0.2.0#list-resources", list_resources, (void), ())        \
    TOOLBAY_EXPORT_("resources@0.2.0#list-resource-templates", list_templates, (void), ()) \
    TOOLBAY_EXPORT_("resources@0.2.0#read-resource", read_resource,                      \
        (const char *uri, size_t uri_size), (uri, uri_size))

#define TOOLBAY_EXPORT_COMPLETIONS                                                       \
    TOOLBAY_EXPORT_("completion@0.2.0#complete", complete,                               \
        (int32_t kind, const char *name, size_t name_size, const char *argument,         \
            size_t argument_size, const char *value, size_t value_size,                  \
            const toolbay_setting *given, size_t count),                                 \
        (kind, name, name_size, argument, argument_size, value, value_size, given, count))

#else

#define TOOLBAY_EXPORT_PROMPTS
#define TOOLBAY_EXPORT_RESOURCES
#define TOOLBAY_EXPORT_COMPLETIONS

#endif

#ifdef __cplusplus
#define TOOLBAY_C_ extern "C"
#else
#define TOOLBAY_C_
#endif

/* ---------------------------------------------------------------- results */

/* Returns a result without content, to which blocks can be added. */
toolbay_result *toolbay_output(void);

/* Returns a result with one text, formatted like printf. */
toolbay_result *toolbay_text(const char *format, ...) TOOLBAY_PRINTF(1, 2);

/* Returns a result with structured content: VALUE is a struct that TYPE
 * describes. The host adds the same JSON as text, unless the result has text. */
toolbay_result *toolbay_structured(const toolbay_type *type, const void *value);

/* Returns a failure for arguments that match the schema but make no sense. The
 * model reads the message: state the problem and how to solve it. */
toolbay_result *toolbay_invalid(const char *format, ...) TOOLBAY_PRINTF(1, 2);

/* Returns a failure of the tool. */
toolbay_result *toolbay_failed(const char *format, ...) TOOLBAY_PRINTF(1, 2);

/* A link to a resource that the client can fetch. */
typedef struct {
    const char *uri;
    const char *name;
    const char *title;       /* or NULL */
    const char *description; /* or NULL */
    const char *mime_type;   /* or NULL */
    const uint64_t *size;    /* in bytes; or NULL */
} toolbay_link;

/* The kinds of blocks. Each has its names in blocks.c, and a type in the SDK for
 * C++. A new kind without them does not compile. */
typedef enum {
    TOOLBAY_BLOCK_TEXT,
    TOOLBAY_BLOCK_IMAGE,
    TOOLBAY_BLOCK_AUDIO,
    TOOLBAY_BLOCK_LINK,
    TOOLBAY_BLOCK_RESOURCE
} toolbay_block_kind;

/* Each adds one block to a result and returns the result. */
toolbay_result *toolbay_add_text(toolbay_result *result, toolbay_string text);
toolbay_result *toolbay_add_image(toolbay_result *result, const void *bytes, size_t size, const char *mime_type);
toolbay_result *toolbay_add_audio(toolbay_result *result, const void *bytes, size_t size, const char *mime_type);
toolbay_result *toolbay_add_link(toolbay_result *result, toolbay_link link);

/* Embed a resource's text or bytes. The MIME type may be NULL. */
toolbay_result *toolbay_add_text_resource(toolbay_result *result, const char *uri, toolbay_string text, const char *mime_type);
toolbay_result *toolbay_add_binary_resource(toolbay_result *result, const char *uri, const void *bytes, size_t size, const char *mime_type);

/* Sets the structured content, from a struct or as JSON. */
toolbay_result *toolbay_set_structured(toolbay_result *result, const toolbay_type *type, const void *value);
toolbay_result *toolbay_set_structured_json(toolbay_result *result, toolbay_string json);

/* Sets the result's _meta: a JSON object. */
toolbay_result *toolbay_set_meta(toolbay_result *result, toolbay_string json);

/* The audience of a block. */
enum { TOOLBAY_FOR_USER = 1, TOOLBAY_FOR_ASSISTANT = 2 };

/* Sets the audience of the last block (a sum of TOOLBAY_FOR_...; 0 is everyone) and
 * its importance, from 0 (optional) to 1 (required); a negative value sets nothing. */
toolbay_result *toolbay_annotate(toolbay_result *result, unsigned audience, double priority);

/* Sets the time when the last block's content was last modified, in ISO 8601:
 * "2026-01-12T15:00:58Z". */
toolbay_result *toolbay_set_last_modified(toolbay_result *result, const char *time);

/* The author of a message. */
typedef enum { TOOLBAY_USER, TOOLBAY_ASSISTANT } toolbay_role;

/* For the result of a prompt: the first adds a message with a text, formatted
 * like printf. The second sets the author of the last block's message. */
toolbay_result *toolbay_say(toolbay_result *result, toolbay_role role, const char *format, ...) TOOLBAY_PRINTF(3, 4);
toolbay_result *toolbay_set_role(toolbay_result *result, toolbay_role role);

/* For the result of a prompt: sets its purpose, if the arguments make it more
 * specific than the definition. */
toolbay_result *toolbay_set_description(toolbay_result *result, const char *description);

/* For the result of a resource: sets the _meta of the last item, a JSON object. */
toolbay_result *toolbay_set_item_meta(toolbay_result *result, toolbay_string json);

/* Returns the result of a completion: the values that begin with the typed text,
 * ignoring the case of the letters A to Z. The list of values ends with NULL. */
toolbay_result *toolbay_beginning_with(const char *typed, const char *const *values);

/* For the result of a completion: the first sets the total number of values. The
 * second states that there are more, if their number is not known. */
toolbay_result *toolbay_set_total(toolbay_result *result, uint32_t total);
toolbay_result *toolbay_set_more(toolbay_result *result);

/* Ends the call immediately, from any depth, as a crash with this message. */
void toolbay_panic(const char *format, ...) TOOLBAY_PRINTF(1, 2) __attribute__((noreturn));

/* --------------------------------------------------------------- the host */

/* The severity of a log message, as in RFC 5424. */
typedef enum {
    TOOLBAY_DEBUG,
    TOOLBAY_INFO,
    TOOLBAY_NOTICE,
    TOOLBAY_WARNING,
    TOOLBAY_ERROR,
    TOOLBAY_CRITICAL,
    TOOLBAY_ALERT,
    TOOLBAY_EMERGENCY
} toolbay_level;

/* Writes to the host's log, and to the client if it requested logs. */
void toolbay_log(toolbay_level level, const char *format, ...) TOOLBAY_PRINTF(2, 3);

/* Reports the progress of the call to the client. `progress` must increase;
 * `total` is 0 if it is not known; `message` may be NULL. */
void toolbay_progress(double progress, double total, const char *message);

/* Returns whether the client has cancelled the call. The host ends the call in
 * any case. Use this function only if the tool has to clean up. */
bool toolbay_cancelled(void);

/* Returns the value of a key in [config] of the operator's grant, or NULL: a
 * string unchanged, any other value as JSON. */
const char *toolbay_config(const char *key);

/* Returns every key and value of [config], sorted by key. */
const toolbay_setting *toolbay_config_all(size_t *count);

/* Notifies the clients that subscribed to this resource of the plugin that its
 * content changed. */
void toolbay_resource_updated(const char *uri);

/* -------------------------------------------------------------- questions */

/* The kind of a question. */
typedef enum {
    TOOLBAY_FORM,     /* a form for the user to fill in; do not ask for secrets */
    TOOLBAY_VISIT,    /* a page for the user to open */
    TOOLBAY_SAMPLING, /* a text for the client's model to write */
    TOOLBAY_ROOTS     /* the folders that the user works in */
} toolbay_question_kind;

/* One message of a conversation. */
typedef struct {
    toolbay_role role;
    const char *text;
} toolbay_message;

/* A question to the caller. */
typedef struct {
    const char *key;                 /* identifies it within the call: 1 to 64 characters of A-Z a-z 0-9 _ - . */
    toolbay_question_kind kind;
    bool optional;                   /* a client that cannot answer leads to TOOLBAY_UNSUPPORTED; without this,
                                      * it ends the call */
    const char *message;             /* the purpose of a form or a page; of sampling, the user's text */
    const toolbay_type *fields;      /* of a form: texts, numbers, booleans, choices and lists of choices */
    const char *url;                 /* of a page */
    const toolbay_message *messages; /* of sampling, instead of `message` */
    size_t message_count;
    const char *system;              /* of sampling: the system prompt; or NULL */
    unsigned max_tokens;             /* of sampling */
    const char *more;                /* further parameters as in MCP, such as temperature: a JSON object, whose
                                      * members replace those generated from the above; or NULL */
} toolbay_question;

/* The outcome of a question. */
typedef enum {
    TOOLBAY_ACCEPTED,    /* the form is filled in, the user agreed to open the page, or there is an answer */
    TOOLBAY_DECLINED,    /* the user refused */
    TOOLBAY_CANCELLED,   /* the user closed the form without a decision */
    TOOLBAY_UNSUPPORTED, /* the client cannot answer an optional question */
    TOOLBAY_NOT_ASKED    /* something is wrong with the question, or with an earlier operation of the plugin */
} toolbay_outcome;

/* A folder that the user works in. */
typedef struct {
    const char *uri;  /* begins with file:// */
    const char *name; /* or NULL */
} toolbay_root;

/* An answer. Members that do not apply to the question are 0. All members after
 * `message` are 0 unless the question was accepted. */
typedef struct {
    toolbay_outcome outcome;
    const char *message;        /* why there is no answer: unsupported or not asked */
    const void *fields;         /* of a form: the struct of its `fields` */
    toolbay_string text;        /* of sampling: the text, with a line feed between several blocks */
    const toolbay_root *roots;  /* of roots; the plugin can open only those that its grant allows */
    size_t root_count;
    const toolbay_json *result; /* the client's result as in MCP */
} toolbay_reply;

/* Asks the caller. The host does not wait: it ends the call at this point. When
 * it has the answer, it runs the call again from the beginning, and this
 * function returns immediately. So ask before you change anything. */
toolbay_reply toolbay_ask(toolbay_question question);

/* Asks several questions at once. Returns a reply for each, in the same order. */
const toolbay_reply *toolbay_ask_all(const toolbay_question *questions, size_t count);

/* ------------------------------------------------------------------- HTTP */

/* A header. */
typedef struct {
    const char *name, *value;
} toolbay_http_header;

/* A request. The operator's grant must allow it:
 * http = ["https://api.example.com"] under [permissions]. */
typedef struct {
    const char *method;                 /* NULL is GET */
    const char *url;                    /* begins with https:// or http:// */
    const toolbay_http_header *headers; /* the host sets Host and Content-Length */
    size_t header_count;
    toolbay_string body;                /* without data, there is none */
    uint64_t timeout_ms;                /* of connecting, of the beginning of the response, and of each
                                         * further part of it; 0: only that of the call */
    size_t limit;                       /* the maximum size of the response body, in bytes; 0: 1 MiB */
} toolbay_http_request;

/* The outcome of a request. */
typedef enum {
    TOOLBAY_HTTP_OK,         /* there is a response, with any status */
    TOOLBAY_HTTP_INVALID,    /* the URL, the method or a header is invalid */
    TOOLBAY_HTTP_DENIED,     /* the grant does not allow the request */
    TOOLBAY_HTTP_NO_ADDRESS, /* the server's name has no address, or none that the grant allows */
    TOOLBAY_HTTP_TIMEOUT,    /* the server did not respond in time */
    TOOLBAY_HTTP_CONNECTION, /* the server refused the connection, or closed it too early */
    TOOLBAY_HTTP_TLS,        /* the certificate is not trusted, or encryption failed */
    TOOLBAY_HTTP_TOO_LARGE,  /* the body is larger than `limit` */
    TOOLBAY_HTTP_OTHER
} toolbay_http_error;

/* A response, or the reason why there is none. */
typedef struct {
    toolbay_http_error error;
    const char *message;                /* the reason, as a sentence for the model; NULL if there is a response */
    unsigned status;                    /* such as 200; redirects are not followed */
    const toolbay_http_header *headers;
    size_t header_count;
    toolbay_string body;
} toolbay_http_response;

/* Sends a request, and waits for the complete response. */
toolbay_http_response toolbay_http_send(const toolbay_http_request *request);

/* Send a GET request, and a POST request with this body. The type may be NULL. */
toolbay_http_response toolbay_http_get(const char *url);
toolbay_http_response toolbay_http_post(const char *url, const char *content_type, toolbay_string body);

/* Returns the value of the first header with this name, ignoring case, or NULL. */
const char *toolbay_http_value(const toolbay_http_response *response, const char *name);

/* ------------------------------------------------------------------- JSON */

/* Functions for JSON that no struct describes. The parser and the writer are
 * those of Zig's standard library. */

typedef enum {
    TOOLBAY_JSON_NULL,
    TOOLBAY_JSON_BOOLEAN,
    TOOLBAY_JSON_NUMBER,
    TOOLBAY_JSON_STRING,
    TOOLBAY_JSON_ARRAY,
    TOOLBAY_JSON_OBJECT
} toolbay_json_kind;

/* Parses JSON. Returns NULL if the text is not JSON. */
const toolbay_json *toolbay_json_parse(toolbay_string text);

toolbay_json_kind toolbay_json_kind_of(const toolbay_json *value);

/* Each returns whether the value is of that kind and in range, and then stores it. */
bool toolbay_json_boolean(const toolbay_json *value, bool *out);
bool toolbay_json_integer(const toolbay_json *value, int64_t *out);
bool toolbay_json_natural(const toolbay_json *value, uint64_t *out);
bool toolbay_json_number(const toolbay_json *value, double *out);
bool toolbay_json_string(const toolbay_json *value, toolbay_string *out);

/* Returns the number of values in an array or an object; 0 for others. */
size_t toolbay_json_count(const toolbay_json *value);

/* Return the value at an index of an array or an object, and its key. */
const toolbay_json *toolbay_json_at(const toolbay_json *value, size_t index);
toolbay_string toolbay_json_key(const toolbay_json *value, size_t index);

/* Returns the member of an object; NULL if there is none. */
const toolbay_json *toolbay_json_get(const toolbay_json *value, toolbay_string key);

/* Returns the value as JSON. */
toolbay_string toolbay_json_text(const toolbay_json *value);

/* Writes JSON from left to right, and adds commas and quotes. */
typedef struct toolbay_writer toolbay_writer;

toolbay_writer *toolbay_writer_new(void);
void toolbay_write_object(toolbay_writer *writer); /* begins an object */
void toolbay_write_key(toolbay_writer *writer, toolbay_string key);
void toolbay_write_object_end(toolbay_writer *writer);
void toolbay_write_array(toolbay_writer *writer); /* begins an array */
void toolbay_write_array_end(toolbay_writer *writer);
void toolbay_write_null(toolbay_writer *writer);
void toolbay_write_boolean(toolbay_writer *writer, bool value);
void toolbay_write_integer(toolbay_writer *writer, int64_t value);
void toolbay_write_natural(toolbay_writer *writer, uint64_t value);
void toolbay_write_number(toolbay_writer *writer, double value); /* not finite: null */
void toolbay_write_string(toolbay_writer *writer, toolbay_string value);
void toolbay_write_raw(toolbay_writer *writer, toolbay_string json);

/* Returns the text that was written so far. */
toolbay_string toolbay_written(toolbay_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
