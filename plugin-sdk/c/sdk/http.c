/* HTTP requests over wasi:http. */

#include <string.h>
#include <strings.h>

#include "internal.h"

/* The maximum size of a response body, unless the request sets another. */
enum { LIMIT = 1 << 20 };

static toolbay_http_response failed(toolbay_http_error error, const char *message) {
    return (toolbay_http_response){.error = error, .message = message};
}

const char *toolbay_http_value(const toolbay_http_response *response, const char *name) {
    for (size_t i = 0; i < response->header_count; i++) {
        if (strcasecmp(response->headers[i].name, name) == 0) return response->headers[i].value;
    }
    return NULL;
}

toolbay_http_response toolbay_http_get(const char *url) {
    return toolbay_http_send(&(toolbay_http_request){.url = url});
}

toolbay_http_response toolbay_http_post(const char *url, const char *content_type, toolbay_string body) {
    const toolbay_http_header header = {"content-type", content_type};
    return toolbay_http_send(&(toolbay_http_request){
        .method = "POST",
        .url = url,
        .headers = &header,
        .header_count = content_type != NULL,
        .body = {body.data ? body.data : "", body.size},
    });
}

toolbay_http_response toolbay_http_too_large(size_t limit) {
    return failed(
        TOOLBAY_HTTP_TOO_LARGE, toolbay_format("The response is larger than the tool's limit of %zu bytes.", limit).data);
}

size_t toolbay_http_limit(const toolbay_http_request *request) {
    return request->limit ? request->limit : LIMIT;
}

#ifdef __wasm__

/* --------------------------------------------------------------- imports */

#define FROM(module, name) __attribute__((import_module(module), import_name(name)))
#define TYPES(name) FROM("wasi:http/types@0.2.0", name)
#define STREAMS(name) FROM("wasi:io/streams@0.2.0", name)

typedef uint32_t handle;

/* The memory layout of a name and a value of bytes. */
typedef struct {
    toolbay_string name, value;
} entry;

TYPES("[static]fields.from-list") void fields_from_list(const entry *entries, size_t count, void *result);
TYPES("[method]fields.entries") void fields_entries(handle fields, void *result);
TYPES("[resource-drop]fields") void drop_fields(handle fields);
TYPES("[constructor]outgoing-request") handle new_request(handle headers);
TYPES("[method]outgoing-request.set-method")
uint32_t set_method(handle request, uint32_t method, const char *other, size_t size);
TYPES("[method]outgoing-request.set-scheme")
uint32_t set_scheme(handle request, uint32_t some, uint32_t scheme, const char *other, size_t size);
TYPES("[method]outgoing-request.set-authority")
uint32_t set_authority(handle request, uint32_t some, const char *authority, size_t size);
TYPES("[method]outgoing-request.set-path-with-query")
uint32_t set_path(handle request, uint32_t some, const char *path, size_t size);
TYPES("[method]outgoing-request.body") void request_body(handle request, void *result);
TYPES("[resource-drop]outgoing-request") void drop_request(handle request);
TYPES("[constructor]request-options") handle new_options(void);
TYPES("[method]request-options.set-connect-timeout")
uint32_t set_connect_timeout(handle options, uint32_t some, uint64_t timeout);
TYPES("[method]request-options.set-first-byte-timeout")
uint32_t set_first_byte_timeout(handle options, uint32_t some, uint64_t timeout);
TYPES("[method]request-options.set-between-bytes-timeout")
uint32_t set_between_bytes_timeout(handle options, uint32_t some, uint64_t timeout);
FROM("wasi:http/outgoing-handler@0.2.0", "handle")
void handle_request(handle request, uint32_t some, handle options, void *result);
TYPES("[method]outgoing-body.write") void body_write(handle body, void *result);
TYPES("[static]outgoing-body.finish") void body_finish(handle body, uint32_t some, handle trailers, void *result);
TYPES("[resource-drop]outgoing-body") void drop_outgoing_body(handle body);
STREAMS("[method]output-stream.blocking-write-and-flush")
void stream_write(handle stream, const char *piece, size_t size, void *result);
STREAMS("[resource-drop]output-stream") void drop_output_stream(handle stream);
TYPES("[method]future-incoming-response.subscribe") handle future_subscribe(handle future);
TYPES("[method]future-incoming-response.get") void future_get(handle future, void *result);
TYPES("[resource-drop]future-incoming-response") void drop_future(handle future);
FROM("wasi:io/poll@0.2.0", "[method]pollable.block") void pollable_block(handle pollable);
FROM("wasi:io/poll@0.2.0", "[resource-drop]pollable") void drop_pollable(handle pollable);
TYPES("[method]incoming-response.status") uint32_t response_status(handle response);
TYPES("[method]incoming-response.headers") handle response_headers(handle response);
TYPES("[method]incoming-response.consume") void response_consume(handle response, void *result);
TYPES("[resource-drop]incoming-response") void drop_response(handle response);
TYPES("[method]incoming-body.stream") void body_stream(handle body, void *result);
TYPES("[resource-drop]incoming-body") void drop_incoming_body(handle body);
STREAMS("[method]input-stream.blocking-read") void stream_read(handle stream, uint64_t size, void *result);
STREAMS("[resource-drop]input-stream") void drop_input_stream(handle stream);
FROM("wasi:io/error@0.2.0", "[resource-drop]error") void drop_error(handle error);
TYPES("http-error-code") void http_error_code(handle error, void *result);

/* --------------------------------------------------------------- results */

/* Buffer to which the host writes the result of a function. The largest
 * result
 * is option<result<result<own<incoming-response>, error-code>>>. */
typedef union {
    uint8_t bytes[64];
    uint32_t words[16];
    uint64_t alignment;
} result;

static toolbay_string text_at(const result *from, size_t at) {
    toolbay_string text;
    memcpy(&text, from->bytes + at, sizeof text);
    return text;
}

/* The cases of the variant error-code. */
enum {
    DNS_TIMEOUT = 0,
    DNS_ERROR = 1,
    DESTINATION_UNROUTABLE = 5,
    CONNECTION_REFUSED = 6,
    CONNECTION_TERMINATED = 7,
    CONNECTION_TIMEOUT = 8,
    CONNECTION_WRITE_TIMEOUT = 10,
    CONNECTION_LIMIT_REACHED = 11,
    TLS_PROTOCOL_ERROR = 12,
    TLS_ALERT_RECEIVED = 14,
    REQUEST_DENIED = 15,
    RESPONSE_INCOMPLETE = 25,
    RESPONSE_TIMEOUT = 33,
    INTERNAL_ERROR = 38
};

/* Returns the response for the error-code at this place of a result. */
static toolbay_http_response failed_with(const result *from, size_t at) {
    const uint8_t code = from->bytes[at];
    if (code == REQUEST_DENIED) return failed(TOOLBAY_HTTP_DENIED, "The request is denied.");
    if (code == DNS_TIMEOUT || (code >= CONNECTION_TIMEOUT && code <= CONNECTION_WRITE_TIMEOUT) ||
        code == RESPONSE_TIMEOUT) {
        return failed(TOOLBAY_HTTP_TIMEOUT, "The server did not answer in time.");
    }
    if (code >= DNS_ERROR && code <= DESTINATION_UNROUTABLE) {
        return failed(TOOLBAY_HTTP_NO_ADDRESS, "The server cannot be found.");
    }
    if (code == CONNECTION_REFUSED || code == CONNECTION_TERMINATED || code == RESPONSE_INCOMPLETE) {
        return failed(TOOLBAY_HTTP_CONNECTION, "The connection to the server failed.");
    }
    if (code >= TLS_PROTOCOL_ERROR && code <= TLS_ALERT_RECEIVED) {
        return failed(TOOLBAY_HTTP_TLS, "The connection to the server is not secure.");
    }
    if (code == CONNECTION_LIMIT_REACHED) {
        return failed(TOOLBAY_HTTP_OTHER, "The request failed: connection limit reached.");
    }
    if (code == INTERNAL_ERROR && from->bytes[at + 8]) {
        const toolbay_string words = text_at(from, at + 12);
        const toolbay_string message = toolbay_format("The request failed: %.*s.", (int)words.size, words.data);
        return failed(TOOLBAY_HTTP_OTHER, message.data);
    }
    return failed(TOOLBAY_HTTP_OTHER, "The request failed: HTTP protocol error.");
}

static toolbay_http_response invalid(const char *what) {
    return failed(TOOLBAY_HTTP_INVALID, toolbay_format("The request cannot be sent: %s.", what).data);
}

/* --------------------------------------------------------------- request */

/* Creates the headers, including the length of the body if there is one. */
static bool fields_of(const toolbay_http_request *request, handle *fields) {
    size_t count = 0;
    entry *entries = toolbay_allocate((request->header_count + 1) * sizeof *entries);
    for (size_t i = 0; i < request->header_count; i++) {
        const toolbay_http_header *header = &request->headers[i];
        entries[count++] = (entry){toolbay_utf8(toolbay_str(header->name)), toolbay_str(header->value)};
    }
    if (request->body.data) {
        entries[count++] = (entry){toolbay_str("content-length"), toolbay_format("%zu", request->body.size)};
    }
    result made;
    fields_from_list(entries, count, &made);
    *fields = made.words[1];
    return made.bytes[0] == 0;
}

/* Sets the parts of the request. Returns an error message, or NULL. */
static const char *fill(handle request, const char *method, bool secure, toolbay_string authority, toolbay_string path) {
    static const char *const methods[] = {
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};
    uint32_t number = 0;
    while (number < sizeof methods / sizeof *methods && strcmp(methods[number], method) != 0) number++;
    const toolbay_string other = toolbay_utf8(toolbay_str(method));
    if (set_method(request, number, other.data, other.size)) return "its method is no HTTP method";
    if (set_scheme(request, 1, secure, "", 0)) return "its scheme is unknown";
    if (set_authority(request, 1, authority.data, authority.size)) return "the host in its URL is invalid";
    if (set_path(request, 1, path.data, path.size)) return "the path in its URL is invalid";
    return NULL;
}

/* Writes the body. A server that does not need all of it has responded before
 * its end. */
static void write_body(handle body, toolbay_string bytes) {
    enum { MOST = 4096 }; /* the most bytes that the host accepts at once */
    result done;
    body_write(body, &done);
    if (done.bytes[0]) {
        drop_outgoing_body(body);
        return;
    }
    const handle stream = done.words[1];
    bool fits = true;
    for (size_t at = 0; fits && at < bytes.size;) {
        const size_t size = bytes.size - at < MOST ? bytes.size - at : MOST;
        stream_write(stream, bytes.data + at, size, &done);
        fits = done.bytes[0] == 0;
        if (!fits && done.bytes[4] == 0) drop_error(done.words[2]);
        at += size;
    }
    drop_output_stream(stream);
    if (fits) {
        body_finish(body, 0, 0, &done);
    } else {
        drop_outgoing_body(body);
    }
}

/* -------------------------------------------------------------- response */

static void read_headers(handle incoming, toolbay_http_response *response) {
    const handle fields = response_headers(incoming);
    result list;
    fields_entries(fields, &list);
    drop_fields(fields);
    const entry *entries = (const entry *)(uintptr_t)list.words[0];
    response->header_count = list.words[1];
    toolbay_http_header *headers = toolbay_allocate(response->header_count * sizeof *headers);
    for (size_t i = 0; i < response->header_count; i++) {
        headers[i].name = toolbay_copy(entries[i].name.data, entries[i].name.size).data;
        headers[i].value = toolbay_copy(entries[i].value.data, entries[i].value.size).data;
    }
    response->headers = headers;
}

/* Reads the body up to its end, or to one byte past the limit. */
static toolbay_http_response read_body(handle stream, size_t limit, toolbay_http_response response) {
    enum { PIECE = 64 << 10 };
    size_t size = 0, capacity = 0;
    char *bytes = NULL;
    for (;;) {
        result got;
        stream_read(stream, PIECE, &got);
        if (got.bytes[0]) {
            if (got.bytes[4]) break;
            const handle error = got.words[2];
            http_error_code(error, &got);
            drop_error(error);
            if (got.bytes[0]) return failed_with(&got, 8);
            return failed(TOOLBAY_HTTP_CONNECTION, "The connection to the server failed.");
        }
        const toolbay_string piece = text_at(&got, 4);
        if (piece.size > limit - size) return toolbay_http_too_large(limit);
        if (size + piece.size > capacity) {
            capacity = 2 * (size + piece.size);
            bytes = toolbay_reallocate(bytes, capacity);
        }
        if (piece.size) memcpy(bytes + size, piece.data, piece.size);
        size += piece.size;
        if (piece.size) toolbay_release(piece);
    }
    response.body = toolbay_copy(bytes, size);
    toolbay_release((toolbay_string){bytes, capacity});
    return response;
}

static toolbay_http_response receive(handle incoming, size_t limit) {
    toolbay_http_response response = {.status = response_status(incoming)};
    read_headers(incoming, &response);
    result got;
    response_consume(incoming, &got);
    drop_response(incoming);
    const handle body = got.words[1];
    if (!got.bytes[0]) body_stream(body, &got);
    if (got.bytes[0]) return failed(TOOLBAY_HTTP_OTHER, "The request failed: the host has no body.");
    const handle stream = got.words[1];
    response = read_body(stream, limit, response);
    drop_input_stream(stream);
    drop_incoming_body(body);
    return response;
}

static toolbay_http_response wait_for(handle future, size_t limit) {
    const handle ready = future_subscribe(future);
    pollable_block(ready);
    drop_pollable(ready);
    result got;
    future_get(future, &got);
    drop_future(future);
    if (!got.bytes[0] || got.bytes[8]) return failed(TOOLBAY_HTTP_OTHER, "The request failed: the host has no response.");
    if (got.bytes[16]) return failed_with(&got, 24);
    return receive(got.words[6], limit);
}

toolbay_http_response toolbay_http_send(const toolbay_http_request *request) {
    const char *url = request->url ? request->url : "";
    const bool secure = strncasecmp(url, "https://", 8) == 0;
    if (!secure && strncasecmp(url, "http://", 7) != 0) return invalid("its URL must begin with https:// or http://");
    url += secure ? 8 : 7;
    const size_t host = strcspn(url, "/?#"), end = host + strcspn(url + host, "#");
    const toolbay_string authority = toolbay_utf8(toolbay_copy(url, host));
    const toolbay_string path = toolbay_utf8(
        toolbay_format("%s%.*s", url[host] == '/' ? "" : "/", (int)(end - host), url + host));

    handle fields;
    if (!fields_of(request, &fields)) return invalid("the host refuses one of its headers");
    const handle outgoing = new_request(fields);
    const char *what = fill(outgoing, request->method ? request->method : "GET", secure, authority, path);
    result done;
    if (!what) {
        request_body(outgoing, &done);
        if (done.bytes[0]) what = "it has no body";
    }
    if (what) {
        drop_request(outgoing);
        return invalid(what);
    }
    const handle body = done.words[1];
    handle options = 0;
    if (request->timeout_ms) {
        const uint64_t timeout =
            request->timeout_ms > UINT64_MAX / 1000000 ? UINT64_MAX : request->timeout_ms * 1000000;
        options = new_options();
        set_connect_timeout(options, 1, timeout);
        set_first_byte_timeout(options, 1, timeout);
        set_between_bytes_timeout(options, 1, timeout);
    }
    handle_request(outgoing, request->timeout_ms != 0, options, &done);
    if (done.bytes[0]) {
        drop_outgoing_body(body);
        return failed_with(&done, 8);
    }
    const handle future = done.words[2];
    write_body(body, request->body);
    return wait_for(future, toolbay_http_limit(request));
}

#endif
