package dev.millrace.log.registry;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import dev.millrace.log.registry.LogSchemaRegistry.CompatibilityRule;
import dev.millrace.log.registry.RegistryContents.Registration;
import dev.millrace.schemas.registry.PublishedSchema;
import dev.millrace.schemas.registry.SchemaRegistryException;
import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import java.util.function.BiConsumer;
import org.apache.avro.Schema;

/**
 * The read side of Confluent's REST protocol, for stock clients that decode our topics, and the questions that it posts.
 *
 * <p>Serves {@code /subjects}, {@code /subjects/S/versions}, {@code /subjects/S/versions/V} (V may be
 * {@code latest}), {@code .../V/schema}, {@code /schemas}, {@code /schemas/types}, {@code /schemas/ids/N}, {@code .../N/schema},
 * {@code .../N/subjects}, {@code .../N/versions}, {@code /config} and {@code /mode}. The last two also take a subject with
 * {@code ?defaultToGlobal=true}. A schema sent to {@code /subjects/S} is looked up, one sent to
 * {@code /compatibility/subjects/S/versions} or {@code .../V} is checked. {@code POST /subjects/S/versions} answers with the id of a
 * schema that is registered, so that stock serializers work with their defaults, and registers none: the creator of a run does.
 * Every other request that would change something is answered with 405. Errors carry the protocol's own codes. Threads are the server's.
 */
public final class RegistryHttpApi {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String MEDIA_TYPE = "application/vnd.schemaregistry.v1+json";
    private static final List<String> ROOTS = List.of("/subjects", "/schemas", "/config", "/mode", "/compatibility");
    /** A larger request is no schema of a record. */
    private static final int MOST_BYTES = 1 << 20;

    private final RegistryContents contents;

    public RegistryHttpApi(RegistryContents contents) {
        this.contents = contents;
    }

    /**
     * Adds the protocol's paths to a server.
     *
     * @param server is given each path and what answers there
     */
    public void mount(BiConsumer<String, HttpHandler> server) {
        ROOTS.forEach(root -> server.accept(root, this::handle));
    }

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            int status = 200;
            JsonNode body;
            try {
                body = answer(exchange, segments(exchange));
            } catch (ErrorAnswerException e) {
                status = e.status;
                body = error(e.code, String.valueOf(e.getMessage()));
            } catch (SchemaRegistryException e) { // the log behind the contents cannot be read
                status = 500;
                body = error(50001, String.valueOf(e.getMessage()));
            }
            byte[] bytes = JSON.writeValueAsBytes(body);
            exchange.getResponseHeaders().set("Content-Type", MEDIA_TYPE);
            exchange.sendResponseHeaders(status, bytes.length);
            exchange.getResponseBody().write(bytes);
        }
    }

    private static List<String> segments(HttpExchange exchange) {
        return Arrays.stream(exchange.getRequestURI().getRawPath().split("/"))
                .filter(segment -> !segment.isEmpty())
                .map(segment -> URLDecoder.decode(segment.replace("+", "%2B"), StandardCharsets.UTF_8))
                .toList();
    }

    private static boolean asks(HttpExchange exchange, String parameter) {
        String query = exchange.getRequestURI().getRawQuery();
        return query != null && List.of(query.split("&")).contains(parameter + "=true");
    }

    private JsonNode answer(HttpExchange exchange, List<String> path) throws IOException {
        switch (exchange.getRequestMethod()) {
            case "GET" -> {
                boolean defaultToGlobal = asks(exchange, "defaultToGlobal");
                return switch (path.get(0)) {
                    case "subjects" -> subjects(path);
                    case "schemas" -> schemas(path);
                    case "config" -> config(path, defaultToGlobal);
                    case "mode" -> mode(path, defaultToGlobal);
                    default -> throw notFound();
                };
            }
            case "POST" -> {
                if (path.get(0).equals("subjects") && path.size() == 2) {
                    return json(lookedUp(path.get(1), posted(exchange)));
                }
                if (path.get(0).equals("subjects")
                        && path.size() == 3
                        && path.get(2).equals("versions")) {
                    return JSON.createObjectNode()
                            .put("id", registered(path.get(1), posted(exchange)).id());
                }
                if (path.get(0).equals("compatibility")
                        && (path.size() == 4 || path.size() == 5)
                        && path.get(1).equals("subjects")
                        && path.get(3).equals("versions")) {
                    return compatibility(path, posted(exchange), asks(exchange, "verbose"));
                }
                throw readOnly("");
            }
            default -> throw readOnly("");
        }
    }

    private static Schema posted(HttpExchange exchange) throws IOException {
        byte[] bytes = exchange.getRequestBody().readNBytes(MOST_BYTES + 1);
        if (bytes.length > MOST_BYTES) {
            throw invalid("the request has more than " + MOST_BYTES + " bytes");
        }
        JsonNode body;
        try {
            body = JSON.readTree(bytes);
        } catch (JsonProcessingException e) {
            throw invalid("the request is not JSON: " + e.getOriginalMessage());
        }
        String type = body.path("schemaType").asText("AVRO");
        if (!type.equals("AVRO")) {
            throw invalid("schemaType must be AVRO: '" + type + "'");
        }
        if (!body.path("references").isEmpty()) {
            throw invalid("references to other subjects are not supported; send the whole schema");
        }
        if (!body.path("schema").isTextual()) {
            throw invalid("the request has no text \"schema\"");
        }
        try {
            return new Schema.Parser().parse(body.path("schema").asText());
        } catch (RuntimeException e) { // Avro's parser has no common type for what it stumbles over
            throw invalid(String.valueOf(e.getMessage()));
        }
    }

    /** The newest registration of a schema; how its JSON is laid out, and Java's own notes in it, do not count. */
    private Optional<Registration> found(SortedMap<Integer, Registration> versions, Schema schema) {
        JsonNode wanted = tree(PublishedSchema.text(schema));
        return versions.values().stream()
                .filter(each -> tree(PublishedSchema.text(new Schema.Parser().parse(each.schema())))
                        .equals(wanted))
                .reduce((older, newer) -> newer);
    }

    private Registration lookedUp(String subject, Schema schema) {
        return found(requireVersions(subject), schema)
                .orElseThrow(() -> new ErrorAnswerException(404, 40403, "Schema not found"));
    }

    private Registration registered(String subject, Schema schema) {
        return found(contents.versions(subject), schema)
                .orElseThrow(() -> readOnly(
                        "the schema of " + schema.getFullName() + " is not registered under '" + subject + "', and "));
    }

    private JsonNode compatibility(List<String> path, Schema schema, boolean isVerbose) {
        SortedMap<Integer, Registration> versions = contents.versions(path.get(2));
        String level = contents.compatibilityLevel();
        Collection<Registration> against;
        if (path.size() == 5 && !path.get(4).equals("latest")) {
            against = List.of(version(requireVersions(path.get(2)), path.get(4)));
        } else if (versions.isEmpty()) {
            against = List.of(); // as Confluent's: there is nothing to contradict
        } else if (path.size() == 4 && level.endsWith("_TRANSITIVE")) {
            against = versions.values();
        } else {
            against = List.of(versions.get(versions.lastKey()));
        }
        List<String> problems = against.stream()
                .flatMap(each -> CompatibilityRule.problems(level, each, schema).stream())
                .toList();
        ObjectNode answer = JSON.createObjectNode().put("is_compatible", problems.isEmpty());
        if (isVerbose) {
            problems.forEach(answer.putArray("messages")::add);
        }
        return answer;
    }

    private SortedMap<Integer, Registration> requireVersions(String subject) {
        SortedMap<Integer, Registration> versions = contents.versions(subject);
        if (versions.isEmpty()) {
            throw new ErrorAnswerException(404, 40401, "Subject '" + subject + "' not found.");
        }
        return versions;
    }

    private JsonNode subjects(List<String> path) {
        if (path.size() == 1) {
            ArrayNode names = JSON.createArrayNode();
            contents.subjects().forEach(names::add);
            return names;
        }
        if (path.size() > 5 || path.size() < 3 || !path.get(2).equals("versions")) {
            throw notFound();
        }
        SortedMap<Integer, Registration> versions = requireVersions(path.get(1));
        if (path.size() == 3) {
            ArrayNode numbers = JSON.createArrayNode();
            versions.keySet().forEach(numbers::add);
            return numbers;
        }
        Registration registration = version(versions, path.get(3));
        if (path.size() == 4) {
            return json(registration);
        }
        if (!path.get(4).equals("schema")) {
            throw notFound();
        }
        return tree(registration.schema());
    }

    private static ObjectNode json(Registration registration) {
        return JSON.createObjectNode()
                .put("subject", registration.subject())
                .put("version", registration.version())
                .put("id", registration.id())
                .put("schema", registration.schema());
    }

    /** Every registration, by subject and version. */
    private List<Registration> all() {
        return contents.subjects().stream()
                .flatMap(subject -> contents.versions(subject).values().stream())
                .toList();
    }

    private static Registration version(SortedMap<Integer, Registration> versions, String text) {
        int number = text.equals("latest") ? versions.lastKey() : number(text, 42202, "version");
        Registration registration = versions.get(number);
        if (registration == null) {
            throw new ErrorAnswerException(404, 40402, "Version " + number + " not found.");
        }
        return registration;
    }

    private JsonNode schemas(List<String> path) {
        if (path.size() == 1) {
            ArrayNode schemas = JSON.createArrayNode();
            all().forEach(registration -> schemas.add(json(registration)));
            return schemas;
        }
        if (path.size() == 2 && path.get(1).equals("types")) {
            return JSON.createArrayNode().add("AVRO");
        }
        if (path.size() < 3 || path.size() > 4 || !path.get(1).equals("ids")) {
            throw notFound();
        }
        int id = number(path.get(2), 42201, "schema id");
        String text = contents.schemaText(id)
                .orElseThrow(() -> new ErrorAnswerException(404, 40403, "Schema " + id + " not found"));
        return path.size() == 3 ? JSON.createObjectNode().put("schema", text) : ofSchema(path.get(3), id, text);
    }

    private JsonNode ofSchema(String what, int id, String text) {
        List<Registration> registrations =
                all().stream().filter(registration -> registration.id() == id).toList();
        ArrayNode answer = JSON.createArrayNode();
        switch (what) {
            case "schema" -> {
                return tree(text);
            }
            case "subjects" ->
                registrations.stream().map(Registration::subject).distinct().forEach(answer::add);
            case "versions" ->
                registrations.forEach(registration -> answer.addObject()
                        .put("subject", registration.subject())
                        .put("version", registration.version()));
            default -> throw notFound();
        }
        return answer;
    }

    private JsonNode config(List<String> path, boolean defaultToGlobal) {
        requireGlobal(path, defaultToGlobal, 40408, "compatibility");
        return JSON.createObjectNode().put("compatibilityLevel", contents.compatibilityLevel());
    }

    private static JsonNode mode(List<String> path, boolean defaultToGlobal) {
        requireGlobal(path, defaultToGlobal, 40409, "mode");
        return JSON.createObjectNode().put("mode", "READONLY");
    }

    /** No subject has settings of its own. */
    private static void requireGlobal(List<String> path, boolean defaultToGlobal, int code, String what) {
        if (path.size() > 2) {
            throw notFound();
        }
        if (path.size() == 2 && !defaultToGlobal) {
            throw new ErrorAnswerException(
                    404, code, "Subject '" + path.get(1) + "' does not have subject-level " + what + " configured");
        }
    }

    private static int number(String text, int code, String what) {
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException e) {
            throw new ErrorAnswerException(422, code, "The specified " + what + " '" + text + "' is not a number.");
        }
    }

    private static JsonNode tree(String schema) {
        try {
            return JSON.readTree(schema);
        } catch (IOException e) {
            throw new SchemaRegistryException("a registered schema is not JSON", e);
        }
    }

    private static ObjectNode error(int code, String message) {
        return JSON.createObjectNode().put("error_code", code).put("message", message);
    }

    private static ErrorAnswerException invalid(String why) {
        return new ErrorAnswerException(422, 42201, "Invalid schema: " + why);
    }

    /** @param found what was asked for, as the beginning of the sentence */
    private static ErrorAnswerException readOnly(String found) {
        return new ErrorAnswerException(
                405, 405, found + "this registry is read-only: the creator of a run registers schemas");
    }

    private static ErrorAnswerException notFound() {
        return new ErrorAnswerException(404, 404, "HTTP 404 Not Found");
    }

    /** An answer of the protocol other than 200. */
    private static final class ErrorAnswerException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private final int status;
        private final int code;

        ErrorAnswerException(int status, int code, String message) {
            super(message, null, false, false);
            this.status = status;
            this.code = code;
        }
    }
}
