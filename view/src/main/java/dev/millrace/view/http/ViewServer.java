package dev.millrace.view.http;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.sun.net.httpserver.HttpExchange;
import dev.millrace.gateway.HttpConfig;
import dev.millrace.gateway.HttpListener;
import dev.millrace.gateway.RequestThreads;
import dev.millrace.report.ReportPage;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.follow.ViewedRun.Events;
import dev.millrace.view.follow.ViewedRun.Events.Event;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.http.Query.BadRequestException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.apache.commons.codec.digest.DigestUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves the page to callers that {@link HttpListener} admits; GET only. {@link RequestThreads} answer at most {@value
 * #MOST} requests; each open page holds one for its events.
 */
public final class ViewServer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ViewServer.class);
    private static final int MOST = 1024;

    private final HttpListener listener;
    private final ViewedRuns runs;
    private final PageFile page = PageFile.read();
    private final Answers answers;

    private ViewServer(HttpListener listener, ViewedRuns runs, ReportShelf reports) {
        this.listener = listener;
        this.runs = runs;
        this.answers = new Answers(runs, reports);
    }

    /**
     * @param port 0 for any free one
     * @param runs closed with the server
     * @param reports in addition to those in the runs' folders
     * @throws RefusedRequestException if the port is taken, or the token or certificate is unusable
     */
    public static ViewServer open(HttpConfig http, int port, ViewedRuns runs, ReportShelf reports) {
        HttpListener listener;
        try {
            listener = HttpListener.open(http, port, "--port", new RequestThreads("view-http", MOST, null));
        } catch (IllegalArgumentException e) {
            throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
        }
        ViewServer view = new ViewServer(listener, runs, reports);
        listener.serve("/", view::handle);
        listener.start();
        return view;
    }

    public String address() {
        return listener.url() + "/";
    }

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            if (!exchange.getRequestMethod().equals("GET")) {
                send(exchange, 405, "text/plain", "this page only reads\n");
            } else {
                answer(exchange);
            }
        }
    }

    private void answer(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        if (path.equals("/") || path.equals("/index.html")) {
            exchange.getResponseHeaders().set("Content-Security-Policy", page.policy());
            send(exchange, 200, "text/html; charset=utf-8", page.bytes());
            return;
        }
        List<String> parts = List.of(path.substring(1).split("/"));
        if (!parts.get(0).equals("api")) {
            send(exchange, 404, "text/plain", "there is no " + path + "\n");
            return;
        }
        try {
            Query query = new Query(exchange.getRequestURI());
            if (parts.size() == 2 && parts.get(1).equals("runs")) {
                send(exchange, 200, answers.runs());
            } else if (parts.size() == 2 && parts.get(1).equals("reports")) {
                send(exchange, 200, answers.reports());
            } else if (parts.size() == 2 && parts.get(1).equals("report")) {
                send(exchange, 200, answers.report(query.required("id")));
            } else if (parts.size() == 4 && parts.get(3).equals("course")) {
                send(exchange, 200, answers.course(parts.get(2)));
            } else if (parts.size() == 4 && parts.get(1).equals("runs")) {
                ViewedRun run = runs.run(parts.get(2))
                        .orElseThrow(() -> new BadRequestException("there is no run " + parts.get(2)));
                if (parts.get(3).equals("events")) {
                    EventStream.answer(exchange, run.events());
                } else {
                    send(exchange, 200, answers.of(run, parts.get(3), query));
                }
            } else {
                throw new BadRequestException("there is no " + path);
            }
        } catch (BadRequestException e) {
            refuse(exchange, 404, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (RuntimeException e) {
            LOG.info("{} failed", exchange.getRequestURI(), e);
            refuse(exchange, 503, e);
        }
    }

    private static void refuse(HttpExchange exchange, int status, Exception e) throws IOException {
        String message = e.getMessage() == null ? e.toString() : e.getMessage();
        JsonNode json = JsonNodeFactory.instance.objectNode().put("problem", message);
        send(exchange, status, "application/json", json.toString());
    }

    private static void send(HttpExchange exchange, int status, String json) throws IOException {
        send(exchange, status, "application/json", json);
    }

    private static void send(HttpExchange exchange, int status, String type, String text) throws IOException {
        send(exchange, status, type, text.getBytes(StandardCharsets.UTF_8));
    }

    private static void send(HttpExchange exchange, int status, String type, byte[] body) throws IOException {
        exchange.getResponseHeaders().set("Content-Type", type);
        exchange.getResponseHeaders().set("Cache-Control", "no-store");
        exchange.getResponseHeaders().set("X-Content-Type-Options", "nosniff");
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
    }

    @Override
    public void close() {
        listener.close();
        runs.close();
    }

    /** Server-sent events of a run; of waiting events of a kind only the newest is sent. */
    static final class EventStream implements Consumer<Event> {
        private static final long BREATH_SECONDS = 5;

        private final Lock lock = new ReentrantLock();
        private final Condition came = lock.newCondition();
        private final Map<String, Event> waiting = new LinkedHashMap<>();

        @Override
        public void accept(Event event) {
            lock.lock();
            try {
                waiting.put(event.name(), event);
                came.signal();
            } finally {
                lock.unlock();
            }
        }

        /** Runs until the client disconnects or the server interrupts. */
        static void answer(HttpExchange exchange, Events events) throws IOException {
            exchange.getResponseHeaders().set("Content-Type", "text/event-stream; charset=utf-8");
            exchange.getResponseHeaders().set("Cache-Control", "no-store");
            exchange.sendResponseHeaders(200, 0);
            EventStream stream = new EventStream();
            events.add(stream);
            try (OutputStream out = exchange.getResponseBody()) {
                out.write("retry: 1000\n\n".getBytes(StandardCharsets.UTF_8));
                out.flush();
                while (!Thread.currentThread().isInterrupted()) {
                    out.write(stream.next().getBytes(StandardCharsets.UTF_8));
                    out.flush();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            } finally {
                events.remove(stream);
            }
        }

        private String next() throws InterruptedException {
            lock.lock();
            try {
                long left = TimeUnit.SECONDS.toNanos(BREATH_SECONDS);
                while (waiting.isEmpty() && left > 0) {
                    left = came.awaitNanos(left);
                }
                if (waiting.isEmpty()) {
                    return ": \n\n"; // to detect disconnected clients
                }
                StringBuilder text = new StringBuilder();
                waiting.values()
                        .forEach(event -> text.append("event: ")
                                .append(event.name())
                                .append("\ndata: ")
                                .append(event.json())
                                .append("\n\n"));
                waiting.clear();
                return text.toString();
            } finally {
                lock.unlock();
            }
        }
    }

    /** The page as one file with script and style inlined. */
    static final class PageFile {
        private static final String BEGIN = "<script id=\"app\" type=\"module\">";
        private static final String END = "</script>";

        private final byte[] bytes;
        private final String policy;

        private PageFile(byte[] bytes, String policy) {
            this.bytes = bytes;
            this.policy = policy;
        }

        static PageFile read() {
            byte[] bytes = ReportPage.empty();
            String text = new String(bytes, StandardCharsets.UTF_8);
            int begin = text.indexOf(BEGIN) + BEGIN.length();
            int end = text.indexOf(END, begin);
            return new PageFile(bytes, policy(text.substring(begin, end)));
        }

        /** Allows only this script, and connections only to this server. */
        private static String policy(String script) {
            return "default-src 'none'; script-src 'sha256-"
                    + Base64.getEncoder().encodeToString(DigestUtils.sha256(script))
                    + "'; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none';"
                    + " frame-ancestors 'none'";
        }

        byte[] bytes() {
            return bytes;
        }

        String policy() {
            return policy;
        }
    }
}
