package dev.millrace.gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpContext;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.millrace.gateway.HttpListener.HttpToken;
import java.io.IOException;
import java.io.OutputStream;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.SSLContext;
import org.apache.commons.codec.digest.DigestUtils;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * HTTP side of the gateway: reads calls within limits, and writes answers or errors in OpenAI's or Anthropic's format.
 * One thread per call.
 */
final class GatewayServer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(GatewayServer.class);
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final byte[] NO_BODY = {};
    private static final int BACKLOG = 1024;
    private static final int MOST_UNREAD = 1024;
    private static final long STREAM_POLL_MS = 20;

    private final GatewayConfig config;
    private final HttpToken token;
    private final SessionDesk desk;
    private final GatewayMeters meters;
    private final CallBodies bodies;
    private final AnswerWrites writes;
    private final Semaphore calls;
    private final HttpServer server;
    private final RequestThreads threads;
    private final ExecutorService streams;

    /**
     * Opens the port; serves after {@link #start}.
     *
     * @param bodies closed with this
     * @param writes closed with this
     * @throws IllegalArgumentException if the port cannot be opened
     */
    GatewayServer(
            GatewayConfig config,
            HttpToken token,
            Optional<SSLContext> tls,
            SessionDesk desk,
            GatewayMeters meters,
            CallBodies bodies,
            AnswerWrites writes) {
        this.config = config;
        this.token = token;
        this.desk = desk;
        this.meters = meters;
        this.bodies = bodies;
        this.writes = writes;
        this.calls = new Semaphore(config.calls());
        try {
            this.server = HttpListener.server(new InetSocketAddress(config.host(), config.port()), BACKLOG, tls);
        } catch (BindException e) {
            throw new IllegalArgumentException(
                    "gateway.port " + config.port() + " on " + config.host()
                            + " is taken; choose another one, or 0 for any",
                    e);
        } catch (IOException e) {
            throw new IllegalArgumentException(
                    "gateway.port " + config.port() + " on " + config.host() + " cannot be opened: " + e.getMessage(),
                    e);
        }
        // calls, as many bodies, and clients that have not sent a full request
        this.threads = new RequestThreads("gateway", 2 * config.calls() + MOST_UNREAD, null);
        this.streams = Executors.newCachedThreadPool(daemons("gateway-stream"));
        server.setExecutor(threads);
        HttpContext context = server.createContext("/", this::handle);
        if (!token.isAsked()) {
            String host = config.publicUrl().isEmpty()
                    ? config.host()
                    : Objects.requireNonNullElse(URI.create(config.publicUrl()).getHost(), config.host());
            context.getFilters().add(new LocalCallers(config.host(), host));
        }
    }

    private static ThreadFactory daemons(String name) {
        return task -> {
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        };
    }

    void start() {
        bodies.start();
        writes.start();
        server.start();
    }

    /** Without a trailing slash. */
    String url() {
        return config.publicUrl().isEmpty() ? HttpListener.url(server, config.host()) : config.publicUrl();
    }

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            try {
                requireToken(exchange);
                byte[] body = isPost(exchange) ? bodies.read(exchange.getRequestBody()) : NO_BODY;
                threads.read();
                answer(exchange, body);
            } catch (RefusedCallException e) {
                meters.refused(e);
                refuse(exchange, e);
            } catch (RuntimeException e) {
                LOG.warn("a call of {} failed", exchange.getRequestURI().getPath(), e);
                refuse(exchange, RefusedCallException.notNow("internal", "the gateway failed: " + e));
            }
        } catch (IOException e) {
            LOG.debug("a caller disconnected: {}", e.getMessage());
        }
    }

    int bodiesUnderWay() {
        return bodies.underWay();
    }

    private static boolean isPost(HttpExchange exchange) {
        return exchange.getRequestMethod().equals("POST");
    }

    /** Holds a call slot from complete body to complete answer: agents may be slow. */
    private void answer(HttpExchange exchange, byte[] body) throws IOException {
        if (!calls.tryAcquire()) {
            throw RefusedCallException.tooMany(
                    "too_many_calls", "there are " + config.calls() + " calls in flight (gateway.calls); retry later");
        }
        AtomicBoolean isTaken = new AtomicBoolean(true);
        Runnable leave = () -> {
            if (isTaken.getAndSet(false)) {
                calls.release();
            }
        };
        try {
            route(exchange, body, leave);
        } finally {
            leave.run();
        }
    }

    private void refuse(HttpExchange exchange, RefusedCallException refusal) throws IOException {
        if (exchange.getResponseCode() != -1) {
            return; // the answer has begun; without its end clients see an error
        }
        if (refusal.status() == 429 || refusal.status() == 503) {
            exchange.getResponseHeaders().set("Retry-After", "1");
        }
        write(
                exchange,
                refusal.status(),
                isOfMessages(exchange) ? MessagesAnswer.error(refusal) : AnswerJson.error(refusal));
        if (refusal.status() == 408) {
            hangUp(exchange);
        }
    }

    /** Closes the connection: otherwise the rest of the body would be read. */
    private static void hangUp(HttpExchange exchange) {
        Thread.currentThread().interrupt(); // no channel is read by a thread that is interrupted
        exchange.close();
        Thread.interrupted();
    }

    private static boolean isOfMessages(HttpExchange exchange) {
        return exchange.getRequestURI().getPath().endsWith("/v1/messages");
    }

    private void requireToken(HttpExchange exchange) {
        String key = exchange.getRequestHeaders().getFirst("X-Api-Key"); // as Anthropic's clients send it
        if (!token.lets(key == null ? exchange.getRequestHeaders().getFirst("Authorization") : "Bearer " + key)) {
            throw RefusedCallException.unauthorized();
        }
    }

    private void route(HttpExchange exchange, byte[] body, Runnable leave) throws IOException {
        String path = exchange.getRequestURI().getPath();
        String[] parts = path.split("/", -1);
        boolean post = isPost(exchange);
        boolean get = exchange.getRequestMethod().equals("GET");
        if (post && path.equals("/v1/sessions")) {
            give(exchange, leave, 201, desk.open(json(body), url()));
        } else if (get && parts.length == 4 && path.startsWith("/v1/sessions/")) {
            give(exchange, leave, 200, desk.shown(parts[3]));
        } else if (post && parts.length == 5 && path.startsWith("/v1/sessions/") && parts[4].equals("complete")) {
            give(exchange, leave, 200, desk.complete(parts[3], json(body)));
        } else if (get && parts.length == 5 && path.startsWith("/sessions/") && path.endsWith("/v1/models")) {
            give(exchange, leave, 200, desk.models());
        } else if (get && parts.length == 6 && path.startsWith("/sessions/") && path.contains("/v1/models/")) {
            give(exchange, leave, 200, desk.model(parts[5]));
        } else if (post
                && parts.length == 6
                && path.startsWith("/sessions/")
                && path.endsWith("/v1/chat/completions")) {
            complete(exchange, parts[2], body, leave, true);
        } else if (post && parts.length == 5 && path.startsWith("/sessions/") && path.endsWith("/v1/completions")) {
            complete(exchange, parts[2], body, leave, false);
        } else if (post && parts.length == 5 && path.startsWith("/sessions/") && path.endsWith("/v1/messages")) {
            answerMessage(exchange, parts[2], body, leave);
        } else {
            throw RefusedCallException.notFound(
                    "there is no " + exchange.getRequestMethod() + " " + path
                            + " here; there are POST /v1/sessions, GET /v1/sessions/S, POST /v1/sessions/S/complete, and with the"
                            + " base_url of a session POST BASE/v1/chat/completions, POST BASE/v1/completions, POST BASE/v1/messages, GET BASE/v1/models and GET BASE/v1/models/MODEL");
        }
    }

    private static JsonNode json(byte[] body) throws IOException {
        try {
            return body.length == 0 ? JSON.createObjectNode() : JSON.readTree(body);
        } catch (JsonProcessingException e) {
            throw RefusedCallException.invalid(null, "the body is not JSON: " + e.getOriginalMessage());
        }
    }

    private void complete(HttpExchange exchange, String sessionId, byte[] body, Runnable leave, boolean chat)
            throws IOException {
        Session session = desk.session(sessionId);
        AgentCall call = AgentCall.of(chat, json(body), DigestUtils.sha256Hex(body), isRepeated(exchange));
        if (call.form().stream()) {
            stream(exchange, leave, session, call, new StreamForm.Chunks());
        } else {
            give(exchange, leave, 200, desk.answer(session, call));
        }
    }

    private void answerMessage(HttpExchange exchange, String sessionId, byte[] body, Runnable leave)
            throws IOException {
        Session session = desk.session(sessionId);
        AgentCall call =
                AgentCall.of(true, MessagesCall.asChat(json(body)), DigestUtils.sha256Hex(body), isRepeated(exchange));
        if (call.form().stream()) {
            stream(exchange, leave, session, call, new MessagesStream(call));
        } else {
            give(exchange, leave, 200, desk.message(session, call));
        }
    }

    /** Clients send their retry count. */
    private static boolean isRepeated(HttpExchange exchange) {
        String tries = exchange.getRequestHeaders().getFirst("X-Stainless-Retry-Count");
        return tries != null && !tries.equals("0");
    }

    private void stream(HttpExchange exchange, Runnable leave, Session session, AgentCall call, StreamForm form)
            throws IOException {
        AnswerStream answer = desk.stream(session, call);
        CompletableFuture<List<PlayedTurn>> played = CompletableFuture.supplyAsync(
                        () -> desk.play(session, call, answer::listener), streams)
                .whenComplete((turns, failure) -> leave.run());
        AnswerStream.Tokens first = awaitFirst(answer, played);
        exchange.getResponseHeaders().set("Content-Type", "text/event-stream; charset=utf-8");
        exchange.getResponseHeaders().set("Cache-Control", "no-cache");
        exchange.sendResponseHeaders(200, 0);
        OutputStream out = exchange.getResponseBody();
        for (ObjectNode piece : answer.first()) {
            send(out, form.of(piece));
        }
        for (AnswerStream.Tokens next = first; next != null; next = await(answer, played)) {
            send(out, form.of(answer.next(next)));
        }
        try {
            for (ObjectNode piece : answer.last(played.join())) {
                send(out, form.of(piece));
            }
            send(out, form.end(played.join()));
        } catch (CompletionException e) {
            RefusedCallException refusal = e.getCause() instanceof RefusedCallException refused
                    ? refused
                    : RefusedCallException.notNow("internal", "the gateway failed: " + e.getCause());
            meters.refused(refusal);
            send(out, form.failed(refusal));
        }
        out.close();
    }

    /** Failures before the first token are plain errors. */
    private static AnswerStream.@Nullable Tokens awaitFirst(
            AnswerStream answer, CompletableFuture<List<PlayedTurn>> played) {
        AnswerStream.Tokens first = await(answer, played);
        if (first == null) {
            try {
                played.join();
            } catch (CompletionException e) {
                if (e.getCause() instanceof RuntimeException cause) {
                    throw cause;
                }
                throw e;
            }
        }
        return first;
    }

    /** Null at the end. */
    private static AnswerStream.@Nullable Tokens await(
            AnswerStream answer, CompletableFuture<List<PlayedTurn>> played) {
        try {
            while (true) {
                boolean isOver = played.isDone(); // before checking, so that no event is missed
                AnswerStream.Tokens next =
                        isOver ? answer.handed().poll() : answer.handed().poll(STREAM_POLL_MS, TimeUnit.MILLISECONDS);
                if (next != null || isOver) {
                    return next;
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw RefusedCallException.notNow("closing", "the gateway is being closed");
        }
    }

    private void give(HttpExchange exchange, Runnable leave, int status, ObjectNode answer) throws IOException {
        leave.run();
        write(exchange, status, answer);
    }

    private void send(OutputStream out, String events) throws IOException {
        writes.write(out, events.getBytes(StandardCharsets.UTF_8));
    }

    private void write(HttpExchange exchange, int status, ObjectNode answer) throws IOException {
        byte[] body = JSON.writeValueAsBytes(answer);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, body.length);
        writes.write(exchange.getResponseBody(), body); // flushed before the rest of the call's body is drained
    }

    @Override
    public void close() {
        server.stop(0);
        bodies.close();
        writes.close();
        threads.close();
        streams.shutdownNow();
    }

    /** Anthropic's stream: named events and content blocks, made from OpenAI chunks. */
    static final class MessagesStream implements StreamForm {
        private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

        private final AgentCall call;
        private boolean isBegun;
        private boolean isTextOpen;
        private int block;

        MessagesStream(AgentCall call) {
            this.call = call;
        }

        @Override
        public String of(ObjectNode piece) {
            StringBuilder events = new StringBuilder();
            if (!isBegun) {
                isBegun = true;
                ObjectNode begin = event("message_start");
                ObjectNode message = MessagesAnswer.head(
                        "msg_" + piece.path("id").asText(), piece.path("model").asText());
                message.putArray("content");
                message.putNull("stop_reason");
                message.putNull("stop_sequence");
                message.putObject("usage").put("input_tokens", 0).put("output_tokens", 0); // the end has them
                begin.set("message", message);
                add(events, begin);
            }
            JsonNode delta = piece.path("choices").path(0).path("delta");
            String text = delta.path("content").asText("");
            if (!text.isEmpty()) {
                if (!isTextOpen) {
                    isTextOpen = true;
                    ObjectNode start = event("content_block_start").put("index", block);
                    start.putObject("content_block").put("type", "text").put("text", "");
                    add(events, start);
                }
                ObjectNode more = event("content_block_delta").put("index", block);
                more.putObject("delta").put("type", "text_delta").put("text", text);
                add(events, more);
            }
            for (JsonNode use : delta.path("tool_calls")) {
                closeText(events);
                ObjectNode start = event("content_block_start").put("index", block);
                start.putObject("content_block")
                        .put("type", "tool_use")
                        .put("id", use.path("id").asText())
                        .put("name", use.at("/function/name").asText())
                        .putObject("input");
                add(events, start);
                ObjectNode input = event("content_block_delta").put("index", block);
                input.putObject("delta")
                        .put("type", "input_json_delta")
                        .put("partial_json", use.at("/function/arguments").asText());
                add(events, input);
                add(events, event("content_block_stop").put("index", block++));
            }
            return events.toString();
        }

        private void closeText(StringBuilder events) {
            if (isTextOpen) {
                isTextOpen = false;
                add(events, event("content_block_stop").put("index", block++));
            }
        }

        @Override
        public String end(List<PlayedTurn> turns) {
            StringBuilder events = new StringBuilder();
            closeText(events);
            ObjectNode over = event("message_delta");
            MessagesAnswer.end(over.putObject("delta"), turns.get(0), call);
            over.set("usage", MessagesAnswer.usage(turns.get(0).record().getUsage()));
            add(events, over);
            add(events, event("message_stop"));
            return events.toString();
        }

        @Override
        public String failed(RefusedCallException refusal) {
            StringBuilder events = new StringBuilder();
            add(events, MessagesAnswer.error(refusal));
            return events.toString();
        }

        private static ObjectNode event(String type) {
            return NODES.objectNode().put("type", type);
        }

        private static void add(StringBuilder events, ObjectNode event) {
            events.append("event: ")
                    .append(event.get("type").textValue())
                    .append("\ndata: ")
                    .append(event)
                    .append("\n\n");
        }
    }

    /** Stream format of a client; one per stream. */
    private interface StreamForm {
        String of(ObjectNode piece);

        /** Call when the turns are on the log. */
        String end(List<PlayedTurn> turns);

        String failed(RefusedCallException refusal);

        final class Chunks implements StreamForm {
            @Override
            public String of(ObjectNode piece) {
                return "data: " + piece + "\n\n";
            }

            @Override
            public String end(List<PlayedTurn> turns) {
                return "data: [DONE]\n\n";
            }

            @Override
            public String failed(RefusedCallException refusal) {
                return "data: " + AnswerJson.error(refusal) + "\n\n"; // and no end
            }
        }
    }

    /**
     * Converts a call of {@code /v1/messages} to a chat: {@code system} becomes the first message, tool results become
     * messages, tools become functions.
     */
    static final class MessagesCall {
        private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
        private static final Set<String> KNOWN = Set.of(
                "model",
                "messages",
                "max_tokens",
                "system",
                "stop_sequences",
                "stream",
                "temperature",
                "top_p",
                "top_k",
                "tools",
                "tool_choice",
                "thinking");
        /** Without effect on sampling. */
        private static final Set<String> ASIDE = Set.of("metadata", "service_tier", "cache_control");

        private final JsonNode body;

        private MessagesCall(JsonNode body) {
            this.body = body;
        }

        /** @throws RefusedCallException naming the unsupported or invalid field */
        static ObjectNode asChat(JsonNode body) {
            if (!body.isObject()) {
                throw RefusedCallException.invalid(null, "the body must be a JSON object");
            }
            return new MessagesCall(body).chat();
        }

        private ObjectNode chat() {
            for (Iterator<String> names = body.fieldNames(); names.hasNext(); ) {
                String name = names.next();
                if (!KNOWN.contains(name) && !ASIDE.contains(name) && isGiven(body.get(name))) {
                    throw RefusedCallException.unsupported(name, name + " is not supported; leave it out");
                }
            }
            if (!body.path("max_tokens").isIntegralNumber()) {
                throw RefusedCallException.invalid(
                        "max_tokens", "max_tokens must be a whole number: " + body.path("max_tokens"));
            }
            if (isGiven(body.path("thinking"))
                    && !body.at("/thinking/type").asText().equals("disabled")) {
                throw RefusedCallException.unsupported(
                        "thinking", "thinking must be disabled: " + body.get("thinking"));
            }
            ObjectNode chat = NODES.objectNode();
            for (String same : Set.of("model", "max_tokens", "stream", "temperature", "top_p", "top_k")) {
                if (isGiven(body.path(same))) {
                    chat.set(same, body.get(same));
                }
            }
            if (isGiven(body.path("stop_sequences"))) {
                chat.set("stop", body.get("stop_sequences"));
            }
            ArrayNode messages = chat.putArray("messages");
            if (isGiven(body.path("system"))) {
                messages.addObject().put("role", "system").put("content", text(body.get("system"), "system"));
            }
            if (!body.path("messages").isArray() || body.get("messages").isEmpty()) {
                throw RefusedCallException.invalid("messages", "messages must be a list with at least one message");
            }
            int at = 0;
            for (JsonNode message : body.get("messages")) {
                put(message, "messages[" + at++ + "]", messages);
            }
            tools(chat);
            return chat;
        }

        private static boolean isGiven(JsonNode value) {
            return !value.isMissingNode() && !value.isNull();
        }

        private static void put(JsonNode message, String place, ArrayNode into) {
            String role = message.path("role").asText();
            if (!role.equals("user") && !role.equals("assistant")) {
                throw RefusedCallException.invalid(
                        place + ".role", place + ".role must be user or assistant: '" + role + "'");
            }
            JsonNode content = message.path("content");
            if (content.isTextual()) {
                into.addObject().put("role", role).set("content", content);
            } else if (!content.isArray()) {
                throw RefusedCallException.invalid(
                        place + ".content", place + ".content must be a text or a list of blocks");
            } else if (role.equals("user")) {
                putUser(content, place + ".content", into);
            } else {
                putAssistant(content, place + ".content", into);
            }
        }

        private static void putUser(JsonNode blocks, String place, ArrayNode into) {
            StringBuilder said = new StringBuilder();
            boolean isSaid = false;
            for (int i = 0; i < blocks.size(); i++) {
                JsonNode block = blocks.get(i);
                if (block.path("type").asText().equals("tool_result")) {
                    putSaid(said, isSaid, into);
                    isSaid = false;
                    into.addObject()
                            .put("role", "tool")
                            .put("tool_call_id", block.path("tool_use_id").asText())
                            .put("content", text(block.path("content"), place + "[" + i + "].content"));
                } else {
                    said.append(text(block, place + "[" + i + "]"));
                    isSaid = true;
                }
            }
            putSaid(said, isSaid, into);
        }

        private static void putSaid(StringBuilder said, boolean isSaid, ArrayNode into) {
            if (isSaid) {
                into.addObject().put("role", "user").put("content", said.toString());
            }
            said.setLength(0);
        }

        private static void putAssistant(JsonNode blocks, String place, ArrayNode into) {
            ObjectNode message = into.addObject().put("role", "assistant");
            StringBuilder said = new StringBuilder();
            ArrayNode calls = NODES.arrayNode();
            for (int i = 0; i < blocks.size(); i++) {
                JsonNode block = blocks.get(i);
                if (block.path("type").asText().equals("tool_use")) {
                    JsonNode input = block.path("input");
                    if (!block.path("name").isTextual() || isGiven(input) && !input.isObject()) {
                        throw RefusedCallException.invalid(
                                place,
                                place + "[" + i + "] must have a name and an input that is an object: " + shown(block));
                    }
                    ObjectNode call = calls.addObject();
                    call.put("id", block.path("id").asText()).put("type", "function");
                    call.putObject("function")
                            .put("name", block.path("name").asText())
                            .put("arguments", isGiven(input) ? input.toString() : "{}");
                } else {
                    said.append(text(block, place + "[" + i + "]"));
                }
            }
            message.put("content", said.toString());
            if (!calls.isEmpty()) {
                message.set("tool_calls", calls);
            }
        }

        /** A text, a text block, or a list of these. */
        private static String text(JsonNode content, String place) {
            if (content.isTextual()) {
                return content.textValue();
            }
            if (content.isArray()) {
                StringBuilder all = new StringBuilder();
                for (int i = 0; i < content.size(); i++) {
                    all.append(text(content.get(i), place + "[" + i + "]"));
                }
                return all.toString();
            }
            if (!isGiven(content)) {
                return "";
            }
            if (!content.path("type").asText().equals("text")
                    || !content.path("text").isTextual()) {
                throw RefusedCallException.unsupported(
                        place,
                        place + " is a block of the type '"
                                + content.path("type").asText() + "', and the policy reads only text");
            }
            return content.get("text").textValue();
        }

        private void tools(ObjectNode chat) {
            JsonNode choice = body.path("tool_choice");
            String type = choice.path("type").asText();
            if (isGiven(choice) && !type.equals("auto") && !type.equals("none")) {
                throw RefusedCallException.unsupported(
                        "tool_choice",
                        "tool_choice must be auto or none, since the policy cannot be forced to call a tool: "
                                + choice);
            }
            if (isGiven(body.path("tools")) && !body.get("tools").isArray()) {
                throw RefusedCallException.invalid(
                        "tools", "tools must be a list of objects: " + shown(body.get("tools")));
            }
            if (!isGiven(body.path("tools")) || type.equals("none")) {
                return;
            }
            ArrayNode functions = chat.putArray("tools");
            for (JsonNode tool : body.get("tools")) {
                String kind = tool.path("type").asText("custom");
                if (!kind.equals("custom") || !tool.path("name").isTextual()) {
                    throw RefusedCallException.unsupported(
                            "tools", "tools must be the agent's own, with name and input_schema: " + shown(tool));
                }
                ObjectNode function =
                        functions.addObject().put("type", "function").putObject("function");
                function.set("name", tool.get("name"));
                if (isGiven(tool.path("description"))) {
                    function.set("description", tool.get("description"));
                }
                function.set(
                        "parameters",
                        isGiven(tool.path("input_schema")) ? tool.get("input_schema") : NODES.objectNode());
            }
        }

        private static String shown(@Nullable JsonNode value) {
            String text = String.valueOf(value);
            return text.length() <= 80 ? text : text.substring(0, 80) + "...";
        }
    }
}
