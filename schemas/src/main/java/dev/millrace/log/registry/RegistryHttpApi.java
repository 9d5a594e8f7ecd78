package dev.millrace.log.registry;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import dev.millrace.log.registry.RegistryContents.Registration;
import dev.millrace.schemas.registry.SchemaRegistryException;
import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.SortedMap;
import java.util.function.BiConsumer;

/**
 * The read side of Confluent's REST protocol, for stock clients that decode our topics.
 *
 * <p>Serves {@code /subjects}, {@code /subjects/S/versions}, {@code /subjects/S/versions/V} (V may be
 * {@code latest}), {@code .../V/schema}, {@code /schemas}, {@code /schemas/types}, {@code /schemas/ids/N}, {@code .../N/schema},
 * {@code .../N/subjects}, {@code .../N/versions}, {@code /config} and {@code /mode}, and these two of a subject with
 * {@code ?defaultToGlobal=true}. Schemas are registered by whoever creates a run and by nobody else: every other method is
 * answered with 405. Errors carry the protocol's own codes. Threads are the server's.
 */
public final class RegistryHttpApi {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String MEDIA_TYPE = "application/vnd.schemaregistry.v1+json";
    private static final List<String> ROOTS = List.of("/subjects", "/schemas", "/config", "/mode");

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
                body = answer(exchange.getRequestMethod(), segments(exchange), isDefaultToGlobal(exchange));
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

    private static boolean isDefaultToGlobal(HttpExchange exchange) {
        String query = exchange.getRequestURI().getRawQuery();
        return query != null && List.of(query.split("&")).contains("defaultToGlobal=true");
    }

    private JsonNode answer(String method, List<String> path, boolean defaultToGlobal) {
        if (!method.equals("GET")) {
            throw new ErrorAnswerException(
                    405, 405, "this registry is read-only: schemas are registered by whoever creates a run");
        }
        return switch (path.get(0)) {
            case "subjects" -> subjects(path);
            case "schemas" -> schemas(path);
            case "config" -> config(path, defaultToGlobal);
            case "mode" -> mode(path, defaultToGlobal);
            default -> throw notFound();
        };
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
        SortedMap<Integer, Registration> versions = contents.versions(path.get(1));
        if (versions.isEmpty()) {
            throw new ErrorAnswerException(404, 40401, "Subject '" + path.get(1) + "' not found.");
        }
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
            throw new SchemaRegistryException("a registered schema is no JSON", e);
        }
    }

    private static ObjectNode error(int code, String message) {
        return JSON.createObjectNode().put("error_code", code).put("message", message);
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
