//! A component for an HTTP host that is no MCP server: it greets whoever asks for `/`.

use std::io::Write as _;

use wasip2::exports::http::incoming_handler::Guest;
use wasip2::http::types::{
    Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam,
};

wasip2::http::proxy::export!(Page);

struct Page;

impl Guest for Page {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let is_known = request.path_with_query().as_deref() == Some("/");
        let response = OutgoingResponse::new(Fields::new());
        let (status, text) = if is_known {
            (200, "<h1>Hello</h1>")
        } else {
            (404, "Not found")
        };
        let _ = response.set_status_code(status);
        let Ok(body) = response.body() else { return };
        ResponseOutparam::set(out, Ok(response));
        if let Ok(mut stream) = body.write() {
            drop(stream.write_all(text.as_bytes()));
        }
        drop(OutgoingBody::finish(body, None));
    }
}
