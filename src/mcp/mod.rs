//! Serves the tools over the Model Context Protocol (MCP), in its current version and the one before.
//!
//! This module makes no decisions. The caller comes with the request or with the process, and [`tools`] does the rest. The server keeps no
//! state between requests, so any process can answer the next one. A refusal is an answer of the tool, which the model reads. Protocol
//! errors are for clients.

use std::{borrow::Cow, sync::Arc};

use axum::http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
        Tool,
    },
    service::{RequestContext, ServerInitializeError},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde_json::{Map, Value};

use crate::tools::{self, Caller, Tools};

/// A caller, and what its calls work with.
#[derive(Debug, Clone)]
pub struct Session {
    pub tools: Tools,
    pub caller: Caller,
}

/// The MCP service over HTTP. Each request carries a [`Session`] in its extensions, put there by the HTTP layer that authenticated the
/// caller.
pub type Service = StreamableHttpService<Server, NeverSessionManager>;

#[derive(Debug, Clone)]
pub struct Server(SessionSource);

#[derive(Debug, Clone)]
enum SessionSource {
    One(Arc<Session>),
    EachRequest,
}

/// Supported versions. A client begins with `initialize` in the first one; the second one has no such request.
const VERSIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// Error that ended the service for a client on standard input and output.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the MCP client on stdin and stdout failed: {0}")]
pub struct ServeError(String);

/// Builds the MCP service. Host names, origins and API keys are checked before it, by the rules of all HTTP routes.
pub fn service(max_body_bytes: usize) -> Service {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(max_body_bytes)
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let each = || Ok(Server(SessionSource::EachRequest));
    StreamableHttpService::new(each, Arc::new(NeverSessionManager::default()), config)
}

/// Serves one client on standard input and output until it disconnects.
pub async fn serve_stdio(session: Session) -> Result<(), ServeError> {
    let server = Server(SessionSource::One(Arc::new(session)));
    let running = match rmcp::serve_server(server, rmcp::transport::stdio()).await {
        Ok(running) => running,
        // The client disconnected before its first request.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(ServeError(error.to_string())),
    };
    running.waiting().await.map(drop).map_err(|error| ServeError(error.to_string()))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new(tools::SERVER, env!("CARGO_PKG_VERSION")))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let session = self.session(&context)?;
        let offered = tools::list_offered(&session.caller);
        let told = offered.iter().map(|spec| {
            let schema = spec.input_schema.as_object().cloned().unwrap_or_else(Map::new);
            Tool::new(spec.name.clone(), spec.description.clone(), Arc::new(schema))
        });
        Ok(ListToolsResult::with_all_items(told.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let session = self.session(&context)?;
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        let Session { tools, caller } = &*session;
        let answer = tools::call(tools, caller, &request.name, arguments).await;
        let content = vec![ContentBlock::text(answer.text)];
        let result = match answer.is_error {
            true => CallToolResult::error(content),
            false => CallToolResult::success(content),
        };
        Ok(CallToolResponse::Complete(result))
    }
}

impl Server {
    fn session(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Session>, ErrorData> {
        match &self.0 {
            SessionSource::One(session) => Ok(Arc::clone(session)),
            SessionSource::EachRequest => {
                let parts = context.extensions.get::<Parts>();
                let session = parts.and_then(|parts| parts.extensions.get::<Arc<Session>>());
                let session = session.map(Arc::clone);
                session.ok_or_else(|| {
                    ErrorData::internal_error("the request has no authenticated caller", None)
                })
            }
        }
    }
}
