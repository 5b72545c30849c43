// One tool for each guarantee of the contract, which the project's tests call.

#include <string.h>

#include "toolbay/toolbay.h"

struct text {
    toolbay_string text;
};

static const toolbay_type text_type = TOOLBAY_TYPE(struct text,
    TOOLBAY_FIELD(struct text, text, "What to say."));

static toolbay_result *echo(const void *arguments) {
    return toolbay_add_text(toolbay_output(), ((const struct text *)arguments)->text);
}

// C has no exceptions: a failure is a return value, and toolbay_panic is for bugs.
static toolbay_result *boom(const void *) {
    toolbay_panic("kaboom: %d", 42);
}

static toolbay_result *refuse(const void *) {
    return toolbay_invalid("not today");
}

static toolbay_result *image(const void *) {
    static const unsigned char png[] = {0x89, 'P', 'N', 'G', 0x0D, 0x0A, 0x1A, 0x0A};
    toolbay_result *result = toolbay_output();
    toolbay_add_image(result, png, sizeof png, "image/png");
    return toolbay_add_text(result, toolbay_str("a picture"));
}

struct report {
    const char *units;
    bool cancelled;
};

static const toolbay_type report_type = TOOLBAY_TYPE(struct report,
    TOOLBAY_FIELD(struct report, units, "The units that the operator set.", .nullable = true),
    TOOLBAY_FIELD(struct report, cancelled, "Whether the client gave up."));

static toolbay_result *report(const void *) {
    toolbay_log(TOOLBAY_INFO, "working");
    toolbay_progress(1, 2, NULL);
    toolbay_progress(2, 2, NULL);
    const struct report report = {.units = toolbay_config("units"), .cancelled = toolbay_cancelled()};
    return toolbay_structured(&report_type, &report);
}

struct request {
    const char *url, *method;
    toolbay_string body;
    unsigned limit;
};

static const struct request request_defaults = {.method = "GET"};

static const toolbay_type request_type = TOOLBAY_TYPE_WITH_DEFAULTS(struct request, &request_defaults,
    TOOLBAY_FIELD(struct request, url, "Where to."),
    TOOLBAY_FIELD(struct request, method, "The method.", .optional = true),
    TOOLBAY_FIELD(struct request, body, "The body.", .optional = true),
    TOOLBAY_FIELD(struct request, limit, "The largest body that is taken.", .optional = true));

struct response {
    unsigned status;
    const char *header;
    toolbay_string text;
};

static const toolbay_type response_type = TOOLBAY_TYPE(struct response,
    TOOLBAY_FIELD(struct response, status, "The status."),
    TOOLBAY_FIELD(struct response, header, "The header X-Got."),
    TOOLBAY_FIELD(struct response, text, "The body."));

static toolbay_result *send_request(const void *arguments) {
    const struct request *args = arguments;
    static const toolbay_http_header header = {"X-Own", "value"};
    const toolbay_http_response answer = toolbay_http_send(&(toolbay_http_request){
        .method = args->method,
        .url = args->url,
        .headers = &header,
        .header_count = 1,
        .body = args->body.size ? args->body : (toolbay_string){0},
        .limit = args->limit,
    });
    if (answer.error) return toolbay_failed("%s", answer.message);
    const char *got = toolbay_http_value(&answer, "x-got");
    const struct response response = {answer.status, got ? got : "", answer.body};
    return toolbay_structured(&response_type, &response);
}

struct name {
    const char *name;
};

static const toolbay_type name_type = TOOLBAY_TYPE(struct name,
    TOOLBAY_FIELD(struct name, name, "The name."));

static toolbay_result *ask(const void *) {
    const toolbay_reply reply = toolbay_ask((toolbay_question){
        .kind = TOOLBAY_FORM,
        .key = "name",
        .message = "Which name?",
        .fields = &name_type,
        .optional = true,
    });
    switch (reply.outcome) {
    case TOOLBAY_ACCEPTED: return toolbay_text("Hello, %s.", ((const struct name *)reply.fields)->name);
    case TOOLBAY_DECLINED: return toolbay_text("declined");
    case TOOLBAY_CANCELLED: return toolbay_text("cancelled");
    case TOOLBAY_UNSUPPORTED: return toolbay_text("nobody to ask");
    case TOOLBAY_NOT_ASKED: break;
    }
    return toolbay_failed("%s", reply.message);
}

static toolbay_result *touch(const void *) {
    toolbay_resource_updated("c://about");
    return toolbay_text("touched");
}

TOOLBAY_PLUGIN(
    {
        .name = "c_echo",
        .description = "Says a text back.",
        .arguments = &text_type,
        .call = echo,
        .read_only = TOOLBAY_YES,
    },
    {.name = "c_boom", .description = "Crashes.", .call = boom},
    {.name = "c_refuse", .description = "Refuses.", .call = refuse},
    {.name = "c_image", .description = "Shows a picture.", .call = image},
    {
        .name = "c_send",
        .description = "Sends an HTTP request.",
        .arguments = &request_type,
        .structured = &response_type,
        .call = send_request,
    },
    {
        .name = "c_report",
        .description = "Logs, tells its progress and reads its configuration.",
        .structured = &report_type,
        .call = report,
    },
    {.name = "c_ask", .description = "Asks for a name.", .call = ask},
    {.name = "c_touch", .description = "Reports a change of a resource.", .call = touch})

struct greeting {
    const char *name, *style;
};

static const toolbay_type greeting_type = TOOLBAY_TYPE(struct greeting,
    TOOLBAY_FIELD(struct greeting, name, "Who to greet."),
    TOOLBAY_FIELD(struct greeting, style, "How to greet.", .optional = true));

static toolbay_result *greeting(const void *arguments) {
    const struct greeting *args = arguments;
    if (!args->style) return toolbay_text("Greet %s.", args->name);
    return toolbay_text("Greet %s in a %s style.", args->name, args->style);
}

TOOLBAY_PROMPTS({
    .name = "c_greeting",
    .description = "Greets somebody.",
    .arguments = &greeting_type,
    .get = greeting,
})

static toolbay_result *styles(const toolbay_typed *typed) {
    static const char *const all[] = {"formal", "friendly", "funny", NULL};
    return toolbay_beginning_with(typed->value, all);
}

TOOLBAY_COMPLETIONS({.prompt = "c_greeting", .argument = "style", .complete = styles})

static toolbay_result *about(const char *, const void *) {
    return toolbay_text("A plugin in c.");
}

struct note {
    const char *id;
};

static const toolbay_type note_type = TOOLBAY_TYPE(struct note,
    TOOLBAY_FIELD(struct note, id, NULL));

static toolbay_result *note(const char *, const void *variables) {
    const struct note *note = variables;
    if (strcmp(note->id, "none") == 0) return NULL;
    return toolbay_text("Note %s.", note->id);
}

TOOLBAY_RESOURCES(
    {.uri = "c://about", .name = "about", .mime_type = "text/plain", .read = about},
    {.uri = "c://notes/{id}", .name = "note", .mime_type = "text/plain", .variables = &note_type, .read = note})
