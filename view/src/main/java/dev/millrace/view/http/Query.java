package dev.millrace.view.http;

import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

final class Query {
    private final Map<String, String> values = new HashMap<>();

    Query(URI address) {
        String query = address.getRawQuery();
        if (query != null) {
            for (String part : query.split("&")) {
                int equals = part.indexOf('=');
                if (equals > 0) {
                    values.put(
                            URLDecoder.decode(part.substring(0, equals), StandardCharsets.UTF_8),
                            URLDecoder.decode(part.substring(equals + 1), StandardCharsets.UTF_8));
                }
            }
        }
    }

    Optional<String> text(String name) {
        return Optional.ofNullable(values.get(name)).filter(value -> !value.isEmpty());
    }

    String required(String name) throws BadRequestException {
        Optional<String> value = text(name);
        if (value.isEmpty()) {
            throw new BadRequestException("missing query parameter " + name);
        }
        return value.get();
    }

    long number(String name, long otherwise) throws BadRequestException {
        Optional<String> value = text(name);
        try {
            return value.isEmpty() ? otherwise : Long.parseLong(value.get());
        } catch (NumberFormatException e) {
            throw new BadRequestException(name + " must be a whole number: " + value.orElse(""));
        }
    }

    Map<String, String> values() {
        return values;
    }

    /** An unknown address; the message is for the user. */
    static final class BadRequestException extends Exception {
        private static final long serialVersionUID = 1L;

        BadRequestException(String message) {
            super(message);
        }
    }
}
