package dev.millrace.gateway.engine;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

final class EngineHttp {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration CONNECT_LIMIT = Duration.ofSeconds(10);
    private static final int SHOWN = 300;

    private final String url;
    private final @Nullable String key;
    private final HttpClient client = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(CONNECT_LIMIT)
            .build();

    /** @param key of every call; null for none */
    EngineHttp(String url, @Nullable String key) {
        this.url = url;
        this.key = key;
    }

    String url() {
        return url;
    }

    JsonNode get(String path, Duration limit) {
        return await(send(request(path, limit).GET(), path));
    }

    JsonNode post(String path, @Nullable JsonNode body, Duration limit) {
        return await(ask(path, body, limit));
    }

    CompletableFuture<JsonNode> ask(String path, @Nullable JsonNode body, Duration limit) {
        HttpRequest.Builder request = request(path, limit);
        if (body == null) {
            request.POST(HttpRequest.BodyPublishers.noBody());
        } else {
            request.header("Content-Type", "application/json")
                    .POST(HttpRequest.BodyPublishers.ofString(body.toString()));
        }
        return send(request, path);
    }

    private HttpRequest.Builder request(String path, Duration limit) {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(URI.create(url + path)).timeout(limit);
        return key == null ? request : request.header("Authorization", "Bearer " + key);
    }

    private CompletableFuture<JsonNode> send(HttpRequest.Builder request, String path) {
        CompletableFuture<HttpResponse<String>> sent =
                client.sendAsync(request.build(), HttpResponse.BodyHandlers.ofString());
        CompletableFuture<JsonNode> answered = new CompletableFuture<>();
        sent.whenComplete((response, failure) -> {
            try {
                if (failure == null) {
                    answered.complete(read(response, path));
                } else {
                    answered.completeExceptionally(problem(failure, path));
                }
            } catch (EngineException e) {
                answered.completeExceptionally(e);
            }
        });
        answered.whenComplete((value, failure) -> {
            if (answered.isCancelled()) {
                sent.cancel(true);
            }
        });
        return answered;
    }

    private EngineException problem(Throwable failure, String path) {
        Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
        if (cause instanceof HttpTimeoutException && !(cause instanceof java.net.http.HttpConnectTimeoutException)) {
            return EngineException.failed(url + path + " did not answer in time: " + cause.getMessage(), cause);
        }
        return EngineException.away(
                "the engine at " + url + " does not answer"
                        + (cause instanceof IOException && cause.getMessage() != null
                                ? ": " + cause.getMessage()
                                : " (" + cause + ")")
                        + "; is it started, and is engine.url right?",
                cause == null ? failure : cause);
    }

    private JsonNode read(HttpResponse<String> response, String path) {
        int status = response.statusCode();
        if (status == 401 || status == 403) {
            throw EngineException.unfit(url + path + " asks for a key, or for another one (status " + status
                    + "): engine.key_variable names the variable of the environment that holds it");
        }
        if (status == 404 || status == 405) {
            throw EngineException.unfit("there is no " + path + " at " + url + " (status " + status + ")");
        }
        if (status < 200 || status >= 300) {
            throw EngineException.failed(
                    url + path + " answered with status " + status + ": " + shown(response.body()));
        }
        try {
            return response.body().isBlank() ? MissingNode.getInstance() : JSON.readTree(response.body());
        } catch (JsonProcessingException e) {
            throw EngineException.untrue(url + path + " did not answer with JSON: " + shown(response.body()));
        }
    }

    private static String shown(String body) {
        String text = body.strip();
        return text.length() <= SHOWN ? text : text.substring(0, SHOWN) + "...";
    }

    private static JsonNode await(CompletableFuture<JsonNode> answer) {
        try {
            return answer.join();
        } catch (CompletionException e) {
            if (e.getCause() instanceof EngineException problem) {
                throw problem;
            }
            throw e;
        }
    }
}
