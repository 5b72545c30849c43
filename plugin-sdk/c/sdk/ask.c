/* Questions to the caller as JSON, and their answers from JSON. */

#include <string.h>

#include "internal.h"

/* --------------------------------------------------------------- questions */

/* A writer for the parameters of a question. */
typedef struct {
    toolbay_writer *writer;
    const toolbay_json *more; /* parameters that the author gives as JSON, or NULL */
} params;

/* Begins a member, unless the author gives it. */
static bool begin(params *params, const char *name) {
    if (params->more && toolbay_json_get(params->more, toolbay_str(name))) return false;
    toolbay_write_key(params->writer, toolbay_str(name));
    return true;
}

static void text(params *params, const char *name, const char *value) {
    if (value && begin(params, name)) toolbay_write_string(params->writer, toolbay_str(value));
}

static void member(toolbay_writer *writer, const char *name, const char *value) {
    toolbay_write_key(writer, toolbay_str(name));
    toolbay_write_string(writer, toolbay_str(value));
}

static void messages(params *params, const toolbay_question *question) {
    if (!begin(params, "messages")) return;
    const toolbay_message only = {TOOLBAY_USER, question->message};
    const bool several = question->messages;
    const size_t count = several ? question->message_count : question->message != NULL;
    toolbay_writer *writer = params->writer;
    toolbay_write_array(writer);
    for (size_t i = 0; i < count; i++) {
        const toolbay_message *message = several ? &question->messages[i] : &only;
        toolbay_write_object(writer);
        member(writer, "role", message->role == TOOLBAY_ASSISTANT ? "assistant" : "user");
        toolbay_write_key(writer, toolbay_str("content"));
        toolbay_write_object(writer);
        member(writer, "type", "text");
        member(writer, "text", message->text);
        toolbay_write_object_end(writer);
        toolbay_write_object_end(writer);
    }
    toolbay_write_array_end(writer);
}

static toolbay_string params_of(const toolbay_question *question) {
    params params = {toolbay_writer_new(), NULL};
    if (question->more) {
        params.more = toolbay_json_parse(toolbay_str(question->more));
        if (!params.more || toolbay_json_kind_of(params.more) != TOOLBAY_JSON_OBJECT) {
            toolbay_panic("the question `%s`: `more` must be a JSON object", question->key);
        }
    }
    toolbay_write_object(params.writer);
    switch (question->kind) {
    case TOOLBAY_FORM:
        text(&params, "message", question->message);
        if (question->fields && begin(&params, "requestedSchema")) {
            toolbay_write_raw(params.writer, toolbay_schema(question->fields, SCHEMA_OF_FORM));
        }
        break;
    case TOOLBAY_VISIT:
        text(&params, "message", question->message);
        text(&params, "url", question->url);
        break;
    case TOOLBAY_SAMPLING:
        messages(&params, question);
        text(&params, "systemPrompt", question->system);
        if (begin(&params, "maxTokens")) toolbay_write_natural(params.writer, question->max_tokens);
        break;
    case TOOLBAY_ROOTS:
        break;
    }
    const size_t count = params.more ? toolbay_json_count(params.more) : 0;
    for (size_t i = 0; i < count; i++) {
        toolbay_write_key(params.writer, toolbay_json_key(params.more, i));
        toolbay_write_raw(params.writer, toolbay_json_text(toolbay_json_at(params.more, i)));
    }
    toolbay_write_object_end(params.writer);
    return toolbay_written(params.writer);
}

/* ----------------------------------------------------------------- answers */

static toolbay_reply not_asked(const char *key, const char *why) {
    return (toolbay_reply){
        .outcome = TOOLBAY_NOT_ASKED,
        .message = toolbay_format("the answer to the question `%s`: %s", key, why).data,
    };
}

static toolbay_string string_of(const toolbay_json *object, const char *name) {
    toolbay_string string = {0};
    const toolbay_json *member = toolbay_json_get(object, toolbay_str(name));
    if (member) toolbay_json_string(member, &string);
    return string;
}

/* Reads the user's action, and the fields of a form. */
static toolbay_reply elicited(const toolbay_question *question, toolbay_reply reply) {
    const toolbay_string action = string_of(reply.result, "action");
    const char *did = action.data ? action.data : "";
    if (strcmp(did, "decline") == 0) {
        reply.outcome = TOOLBAY_DECLINED;
    } else if (strcmp(did, "cancel") == 0) {
        reply.outcome = TOOLBAY_CANCELLED;
    } else if (strcmp(did, "accept") != 0) {
        return not_asked(question->key, "its `action` must be accept, decline or cancel");
    } else if (question->kind == TOOLBAY_FORM && question->fields) {
        const toolbay_json *content = toolbay_json_get(reply.result, toolbay_str("content"));
        if (!content) content = toolbay_json_parse(toolbay_str("{}"));
        void *fields = toolbay_allocate(question->fields->size);
        const toolbay_string wrong = toolbay_decode(question->fields, content, fields);
        if (wrong.data) return not_asked(question->key, wrong.data);
        reply.fields = fields;
    }
    return reply;
}

/* Returns the text that the model wrote: one block, or several. */
static toolbay_string sampled(const toolbay_json *result) {
    const toolbay_json *content = toolbay_json_get(result, toolbay_str("content"));
    if (!content) return toolbay_str("");
    const bool several = toolbay_json_kind_of(content) == TOOLBAY_JSON_ARRAY;
    const size_t count = several ? toolbay_json_count(content) : 1;
    toolbay_string all = {0};
    for (size_t i = 0; i < count; i++) {
        const toolbay_string text = string_of(several ? toolbay_json_at(content, i) : content, "text");
        if (text.data) all = all.data ? toolbay_format("%s\n%s", all.data, text.data) : text;
    }
    return all.data ? all : toolbay_str("");
}

static toolbay_reply roots(const toolbay_question *question, toolbay_reply reply) {
    const toolbay_json *listed = toolbay_json_get(reply.result, toolbay_str("roots"));
    if (!listed) return not_asked(question->key, "it has no `roots`");
    reply.root_count = toolbay_json_count(listed);
    toolbay_root *all = toolbay_allocate(reply.root_count * sizeof *all);
    for (size_t i = 0; i < reply.root_count; i++) {
        const toolbay_json *root = toolbay_json_at(listed, i);
        const toolbay_string uri = string_of(root, "uri");
        all[i] = (toolbay_root){uri.data ? uri.data : "", string_of(root, "name").data};
    }
    reply.roots = all;
    return reply;
}

static toolbay_reply reply_of(const toolbay_question *question, toolbay_string answer) {
    toolbay_reply reply = {.result = toolbay_json_parse(answer)};
    if (!reply.result) return not_asked(question->key, "it is not JSON");
    switch (question->kind) {
    case TOOLBAY_FORM:
    case TOOLBAY_VISIT:
        return elicited(question, reply);
    case TOOLBAY_SAMPLING:
        reply.text = sampled(reply.result);
        return reply;
    case TOOLBAY_ROOTS:
        return roots(question, reply);
    }
    return not_asked(question->key, "its kind is unknown");
}

const toolbay_reply *toolbay_ask_all(const toolbay_question *questions, size_t count) {
    asked *asked = toolbay_allocate(count * sizeof *asked);
    for (size_t i = 0; i < count; i++) {
        asked[i].key = toolbay_utf8(toolbay_str(questions[i].key));
        asked[i].kind = (uint8_t)questions[i].kind;
        asked[i].params = params_of(&questions[i]);
        asked[i].required = !questions[i].optional;
    }
    toolbay_string *answers = toolbay_allocate(count * sizeof *answers);
    toolbay_reply *replies = toolbay_allocate(count * sizeof *replies);
    const toolbay_reply refused = toolbay_host_ask(asked, count, answers);
    for (size_t i = 0; i < count; i++) replies[i] = refused.message ? refused : reply_of(&questions[i], answers[i]);
    return replies;
}

toolbay_reply toolbay_ask(toolbay_question question) {
    return *toolbay_ask_all(&question, 1);
}
