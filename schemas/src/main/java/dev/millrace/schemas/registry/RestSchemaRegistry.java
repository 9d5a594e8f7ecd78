package dev.millrace.schemas.registry;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.avro.Schema;
import org.jspecify.annotations.Nullable;

/**
 * Client of a registry with Confluent's REST API: Confluent's own, Karapace, Redpanda or Apicurio.
 *
 * <p>Thread-safe. Answers are cached, since ids are immutable. Every call has a time limit. A registry that does not
 * answer is a {@link SchemaRegistryUnavailableException}, which can be retried, unlike an {@link UnknownSchemaException}.
 */
public final class RestSchemaRegistry implements SchemaRegistry {
    private static final String MEDIA_TYPE = "application/vnd.schemaregistry.v1+json";
    private static final int NOT_FOUND = 404;
    private static final int TOO_MANY_REQUESTS = 429;
    private static final int SERVER_ERROR = 500;
    /** Confluent's error code for an unknown schema, which a plain 404 of a wrong address lacks. */
    private static final int SCHEMA_NOT_FOUND = 40403;

    private static final ObjectMapper JSON = new ObjectMapper();

    private final String address;
    private final @Nullable String authorization;
    private final boolean mayWrite;
    private final Duration timeout;
    private final HttpClient client;
    private final ConcurrentMap<String, Integer> ids = new ConcurrentHashMap<>();
    private final ConcurrentMap<Integer, Schema> schemas = new ConcurrentHashMap<>();

    /**
     * Connects at the first call.
     *
     * @param url such as {@code http://registry:8081}, with {@code user:password@} before the host where needed
     * @param mayWrite whether new schemas are registered
     * @param timeoutMs limit of every call
     */
    public RestSchemaRegistry(String url, boolean mayWrite, long timeoutMs) {
        URI uri = parse(url);
        String user = uri.getRawUserInfo();
        this.authorization = user == null
                ? null
                : "Basic "
                        + Base64.getEncoder()
                                .encodeToString(URLDecoder.decode(user, StandardCharsets.UTF_8)
                                        .getBytes(StandardCharsets.UTF_8));
        String withoutUser = user == null ? url : url.replace(user + "@", "");
        this.address = withoutUser.endsWith("/") ? withoutUser.substring(0, withoutUser.length() - 1) : withoutUser;
        this.mayWrite = mayWrite;
        this.timeout = Duration.ofMillis(timeoutMs);
        this.client = HttpClient.newBuilder().connectTimeout(timeout).build();
    }

    @Override
    public int idOf(String subject, Schema schema) {
        String text = PublishedSchema.text(schema);
        String cached = subject + "\n" + text;
        Integer known = ids.get(cached);
        if (known == null) {
            String path = path(subject) + (mayWrite ? "/versions" : "");
            String body = text(JSON.createObjectNode().put("schema", text));
            HttpResponse<String> response = send(request(path).POST(BodyPublishers.ofString(body)));
            String what =
                    (mayWrite ? "register" : "find") + " the schema of " + schema.getFullName() + " under " + subject;
            known = integer(require(response, what), "id");
            ids.put(cached, known);
        }
        return known;
    }

    @Override
    public Schema byId(int id) {
        Schema known = schemas.get(id);
        if (known == null) {
            if (id < 0) { // from a garbage record; registries assign ids from 0
                throw new UnknownSchemaException(id);
            }
            HttpResponse<String> response = send(request("/schemas/ids/" + id).GET());
            if (response.statusCode() == NOT_FOUND && errorCode(response) == SCHEMA_NOT_FOUND) {
                throw new UnknownSchemaException(id);
            }
            known = parse(id, require(response, "give schema " + id));
            schemas.put(id, known);
        }
        return known;
    }

    /**
     * Requests an arbitrary schema, to check that the address is a registry.
     *
     * @throws SchemaRegistryException if the address does not answer, or is not a registry
     */
    public void requireAnswer() {
        HttpResponse<String> response = send(request("/schemas/ids/0").GET());
        if (response.statusCode() != NOT_FOUND || errorCode(response) != SCHEMA_NOT_FOUND) {
            require(response, "answer as a registry that speaks Confluent's protocol");
        }
    }

    public Set<String> subjects() {
        Set<String> subjects = new TreeSet<>();
        require(send(request("/subjects").GET()), "list its subjects")
                .forEach(subject -> subjects.add(subject.asText()));
        return subjects;
    }

    /** Removes a subject if it exists; records written with its schemas stay readable. */
    public void remove(String subject) {
        HttpResponse<String> response = send(request(path(subject)).DELETE());
        if (response.statusCode() != NOT_FOUND) {
            require(response, "remove subject " + subject);
        }
    }

    private static String path(String subject) {
        return "/subjects/" + URLEncoder.encode(subject, StandardCharsets.UTF_8).replace("+", "%20");
    }

    @Override
    public void close() {
        // closes the client's connections
    }

    private static URI parse(String url) {
        try {
            URI uri = URI.create(url);
            if (uri.getHost() != null && ("http".equals(uri.getScheme()) || "https".equals(uri.getScheme()))) {
                return uri;
            }
        } catch (IllegalArgumentException e) {
            // neither the message nor the cause: both have the whole address, which may contain a password
            throw new IllegalArgumentException("schema_registry_url is not a URL"
                    + (e.getCause() instanceof URISyntaxException syntax
                            ? ": " + syntax.getReason() + " at character " + (syntax.getIndex() + 1)
                            : ""));
        }
        throw new IllegalArgumentException("schema_registry_url must begin with http:// or https:// and name a host");
    }

    private static Schema parse(int id, JsonNode answer) {
        String type = answer.path("schemaType").asText("AVRO");
        if (!type.equals("AVRO")) {
            throw new UnknownSchemaException(id, "is not an Avro schema but " + type);
        }
        try {
            return new Schema.Parser().parse(answer.path("schema").asText());
        } catch (RuntimeException e) { // Avro's parser throws no common exception type
            throw new UnknownSchemaException(id, "cannot be read by itself: " + e.getMessage());
        }
    }

    private HttpRequest.Builder request(String path) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(address + path))
                .timeout(timeout)
                .header("Accept", MEDIA_TYPE)
                .header("Content-Type", MEDIA_TYPE);
        return authorization == null ? request : request.header("Authorization", authorization);
    }

    private HttpResponse<String> send(HttpRequest.Builder request) {
        try {
            return client.send(request.build(), BodyHandlers.ofString());
        } catch (IOException e) {
            throw new SchemaRegistryUnavailableException(
                    "the schema registry at " + address + " does not answer: "
                            + (e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage()),
                    e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new SchemaRegistryException("interrupted while asking the schema registry at " + address, e);
        }
    }

    private JsonNode require(HttpResponse<String> response, String what) {
        if (response.statusCode() != 200) {
            String sentence = "the schema registry at " + address + " did not " + what + ": status "
                    + response.statusCode() + ", " + response.body();
            if (response.statusCode() >= SERVER_ERROR || response.statusCode() == TOO_MANY_REQUESTS) {
                throw new SchemaRegistryUnavailableException(sentence, null);
            }
            throw new SchemaRegistryException(sentence);
        }
        return tree(response);
    }

    private int integer(JsonNode answer, String field) {
        if (!answer.path(field).canConvertToInt()) {
            throw new SchemaRegistryException(
                    "the schema registry at " + address + " answered without " + field + ": " + answer);
        }
        return answer.path(field).asInt();
    }

    private int errorCode(HttpResponse<String> response) {
        return tree(response).path("error_code").asInt();
    }

    private JsonNode tree(HttpResponse<String> response) {
        try {
            return JSON.readTree(response.body());
        } catch (JsonProcessingException e) {
            throw new SchemaRegistryException(
                    "the schema registry at " + address + " answered with no JSON, status " + response.statusCode(), e);
        }
    }

    private static String text(JsonNode node) {
        try {
            return JSON.writeValueAsString(node);
        } catch (JsonProcessingException e) {
            throw new SchemaRegistryException("a request to the schema registry has no JSON form", e);
        }
    }
}
