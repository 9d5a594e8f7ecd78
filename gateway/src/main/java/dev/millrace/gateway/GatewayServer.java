package dev.millrace.gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpContext;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.millrace.gateway.HttpListener.HttpToken;
import dev.millrace.generator.sampling.TurnEngine.TokenListener;
import java.io.IOException;
import java.io.OutputStream;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
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
        this.streams = Executors.newCachedThreadPool(RequestThreads.daemons("gateway-stream"));
        server.setExecutor(threads);
        HttpContext context = server.createContext("/", this::handle);
        if (!token.isAsked()) {
            String host = config.publicUrl().isEmpty()
                    ? config.host()
                    : Objects.requireNonNullElse(URI.create(config.publicUrl()).getHost(), config.host());
            context.getFilters().add(new LocalCallers(config.host(), host));
        }
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
                isOfMessages(exchange) ? MessagesApi.error(refusal) : AnswerJson.error(refusal));
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
        return exchange.getRequestURI().getPath().contains("/v1/messages");
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
        } else if (post
                && parts.length == 6
                && path.startsWith("/sessions/")
                && path.endsWith("/v1/messages/count_tokens")) {
            countTokens(exchange, parts[2], body, leave);
        } else if (post && parts.length == 5 && path.startsWith("/sessions/") && path.endsWith("/v1/responses")) {
            respond(exchange, parts[2], body, leave);
        } else {
            throw RefusedCallException.notFound(
                    "there is no " + exchange.getRequestMethod() + " " + path
                            + " here; there are POST /v1/sessions, GET /v1/sessions/S, POST /v1/sessions/S/complete, and with the"
                            + " base_url of a session POST BASE/v1/chat/completions, POST BASE/v1/responses, POST BASE/v1/completions,"
                            + " POST BASE/v1/messages, POST BASE/v1/messages/count_tokens, GET BASE/v1/models and GET BASE/v1/models/MODEL");
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
            List<PlayedTurn> turns = desk.play(session, call, choice -> TokenListener.NONE);
            give(exchange, leave, 200, desk.chat(session, call, turns));
        }
    }

    private void answerMessage(HttpExchange exchange, String sessionId, byte[] body, Runnable leave)
            throws IOException {
        Session session = desk.session(sessionId);
        AgentCall call = AgentCall.of(
                true, MessagesApi.Call.asChat(json(body)), DigestUtils.sha256Hex(body), isRepeated(exchange));
        if (call.form().stream()) {
            stream(exchange, leave, session, call, new MessagesApi.Stream(call));
        } else {
            PlayedTurn turn = desk.turn(session, call);
            give(exchange, leave, 200, MessagesApi.of(turn, call, desk.chat(session, call, List.of(turn))));
        }
    }

    private void countTokens(HttpExchange exchange, String sessionId, byte[] body, Runnable leave) throws IOException {
        Session session = desk.session(sessionId);
        AgentCall call = AgentCall.of(true, MessagesApi.Call.counted(json(body)), DigestUtils.sha256Hex(body), false);
        give(exchange, leave, 200, JSON.createObjectNode().put("input_tokens", desk.promptTokens(session, call)));
    }

    private void respond(HttpExchange exchange, String sessionId, byte[] body, Runnable leave) throws IOException {
        Session session = desk.session(sessionId);
        ResponsesApi api = new ResponsesApi(json(body));
        AgentCall call = AgentCall.of(true, api.asChat(), DigestUtils.sha256Hex(body), isRepeated(exchange));
        if (call.form().stream()) {
            stream(exchange, leave, session, call, api.stream(turns -> desk.chat(session, call, turns)));
        } else {
            PlayedTurn turn = desk.turn(session, call);
            give(exchange, leave, 200, api.answer(turn, desk.chat(session, call, List.of(turn))));
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

    /** Stream format of a client; one per stream. */
    interface StreamForm {
        String of(ObjectNode piece);

        /** Call when the turns are on the log. */
        String end(List<PlayedTurn> turns);

        String failed(RefusedCallException refusal);

        /** Appends an event that is named by its type. */
        static void add(StringBuilder events, ObjectNode event) {
            events.append("event: ")
                    .append(event.get("type").textValue())
                    .append("\ndata: ")
                    .append(event)
                    .append("\n\n");
        }

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
}
