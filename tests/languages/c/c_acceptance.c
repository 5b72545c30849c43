// One tool for each promise of the contract; the project's tests call them.

#include "toolbay/toolbay.h"

struct text {
    toolbay_string text;
};

static const toolbay_type text_type = TOOLBAY_TYPE(struct text,
    TOOLBAY_FIELD(struct text, text, "What to say."));

static toolbay_result *echo(const void *arguments) {
    return toolbay_add_text(toolbay_output(), ((const struct text *)arguments)->text);
}

// C has no exceptions: a failure is a return value, and toolbay_panic is for what must not happen.
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
    })
