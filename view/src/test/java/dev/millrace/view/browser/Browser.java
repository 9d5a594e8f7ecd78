package dev.millrace.view.browser;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/** A headless Chromium with one page, driven over its own protocol; what it complains of is kept. */
final class Browser implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long LIMIT_SECONDS = 30;

    private final Process process;
    private final WebSocket socket;
    private final AtomicInteger count = new AtomicInteger();
    private final Map<Integer, CompletableFuture<JsonNode>> waiting = new ConcurrentHashMap<>();
    private final List<String> complaints = Collections.synchronizedList(new ArrayList<>());
    private String session = "";

    /** Where one is installed. */
    static Optional<Path> installed() {
        return Stream.of("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
                .map(Path::of)
                .filter(Files::isExecutable)
                .findFirst();
    }

    /** @param folder new, for the browser's own files */
    Browser(Path program, Path folder) throws Exception {
        process = new ProcessBuilder(
                        program.toString(),
                        "--headless",
                        "--no-sandbox",
                        "--disable-gpu",
                        "--disable-quic",
                        "--no-first-run",
                        "--disable-background-networking",
                        "--disable-component-update",
                        "--disable-sync",
                        "--disable-dev-shm-usage",
                        "--user-data-dir=" + folder,
                        "--remote-debugging-port=0",
                        "about:blank")
                .redirectErrorStream(true)
                .start();
        URI address = address();
        socket = HttpClient.newHttpClient()
                .newWebSocketBuilder()
                .buildAsync(address, new Listener())
                .get(LIMIT_SECONDS, TimeUnit.SECONDS);
        String target = call("Target.createTarget", JSON.createObjectNode().put("url", "about:blank"))
                .path("targetId")
                .asText();
        session = call(
                        "Target.attachToTarget",
                        JSON.createObjectNode().put("targetId", target).put("flatten", true))
                .path("sessionId")
                .asText();
        for (String domain : List.of("Page", "Runtime", "Log")) {
            call(domain + ".enable", JSON.createObjectNode());
        }
    }

    private URI address() throws IOException {
        BufferedReader said =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        for (String line = said.readLine(); line != null; line = said.readLine()) {
            int at = line.indexOf("ws://");
            if (at >= 0) {
                Thread rest = new Thread(() -> said.lines().forEach(ignored -> {}), "browser-output");
                rest.setDaemon(true);
                rest.start();
                return URI.create(line.substring(at).strip());
            }
        }
        throw new IOException("the browser ended without saying where it is");
    }

    private final class Listener implements WebSocket.Listener {
        private final StringBuilder text = new StringBuilder();

        @Override
        public CompletionStage<?> onText(WebSocket from, CharSequence data, boolean last) {
            text.append(data);
            if (last) {
                take(text.toString());
                text.setLength(0);
            }
            from.request(1);
            return CompletableFuture.completedFuture(null);
        }
    }

    private void take(String message) {
        try {
            JsonNode json = JSON.readTree(message);
            if (json.has("id")) {
                CompletableFuture<JsonNode> call =
                        waiting.remove(json.path("id").asInt());
                if (call != null) {
                    call.complete(json.has("error") ? json.path("error") : json.path("result"));
                }
                return;
            }
            switch (json.path("method").asText()) {
                case "Runtime.exceptionThrown" ->
                    complaints.add(json.at("/params/exceptionDetails").toString());
                case "Log.entryAdded" -> {
                    if (json.at("/params/entry/level").asText().equals("error")) {
                        complaints.add(json.at("/params/entry").toString());
                    }
                }
                case "Runtime.consoleAPICalled" -> {
                    if (List.of("error", "warning")
                            .contains(json.at("/params/type").asText())) {
                        complaints.add(json.at("/params/args").toString());
                    }
                }
                default -> {}
            }
        } catch (IOException e) {
            complaints.add("not JSON: " + message);
        }
    }

    private JsonNode call(String method, ObjectNode parameters) throws Exception {
        int id = count.incrementAndGet();
        CompletableFuture<JsonNode> answer = new CompletableFuture<>();
        waiting.put(id, answer);
        ObjectNode message = JSON.createObjectNode().put("id", id).put("method", method);
        message.set("params", parameters);
        if (!session.isEmpty()) {
            message.put("sessionId", session);
        }
        socket.sendText(message.toString(), true).get(LIMIT_SECONDS, TimeUnit.SECONDS);
        return answer.get(LIMIT_SECONDS, TimeUnit.SECONDS);
    }

    /** Makes the window so wide, with dark or light colours. */
    void window(int width, int height, String scheme) throws Exception {
        call(
                "Emulation.setDeviceMetricsOverride",
                JSON.createObjectNode()
                        .put("width", width)
                        .put("height", height)
                        .put("deviceScaleFactor", 1)
                        .put("mobile", width < 600));
        ObjectNode media = JSON.createObjectNode();
        media.putArray("features")
                .addObject()
                .put("name", "prefers-color-scheme")
                .put("value", scheme);
        call("Emulation.setEmulatedMedia", media);
    }

    void open(String address) throws Exception {
        call("Page.navigate", JSON.createObjectNode().put("url", address));
    }

    /** The value of an expression, which may be a promise. */
    JsonNode value(String expression) throws Exception {
        JsonNode result = call(
                "Runtime.evaluate",
                JSON.createObjectNode()
                        .put("expression", expression)
                        .put("awaitPromise", true)
                        .put("returnByValue", true));
        if (result.has("exceptionDetails")) {
            throw new IllegalStateException(result.path("exceptionDetails").toString());
        }
        return result.at("/result/value");
    }

    /** Waits until an expression is true, evaluated by the page after each drawing. */
    void await(String condition) throws Exception {
        String page = value(
                        "new Promise((is) => { const end = performance.now() + 10000; const look = () => { let there = false;"
                                + " try { there = !!(" + condition + "); } catch { there = false; }"
                                + " if (there) { is('yes'); } else if (performance.now() > end) { is(document.body.innerText); }"
                                + " else { setTimeout(look, 30); } }; look(); })")
                .asText();
        if (!page.equals("yes")) {
            throw new AssertionError("not within 10 s: " + condition + "\n" + page + "\n" + complaints);
        }
    }

    /** Presses a key that has a name, such as ArrowLeft. */
    void press(String key) throws Exception {
        for (String type : List.of("rawKeyDown", "keyUp")) {
            call(
                    "Input.dispatchKeyEvent",
                    JSON.createObjectNode().put("type", type).put("key", key).put("code", key));
        }
    }

    /** The page as a picture, from its top to its end. */
    byte[] picture() throws Exception {
        return Base64.getDecoder()
                .decode(call(
                                "Page.captureScreenshot",
                                JSON.createObjectNode().put("format", "png").put("captureBeyondViewport", true))
                        .path("data")
                        .asText());
    }

    /** Exceptions, errors and warnings of the browser so far. */
    List<String> complaints() {
        return List.copyOf(complaints);
    }

    @Override
    public void close() {
        socket.abort();
        process.destroy();
        process.onExit().orTimeout(LIMIT_SECONDS, TimeUnit.SECONDS).join();
    }
}
