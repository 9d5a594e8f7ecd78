package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.databind.JsonNode;

/** Reads an object of a {@code config.json} and refuses wrong values by key and value. */
final class ConfigReader {
    private final String source;
    private final JsonNode json;

    /** @param source name of the object in messages */
    ConfigReader(String source, JsonNode json) {
        this.source = source;
        this.json = json;
    }

    /** Returns whether the key is there and not null. */
    boolean has(String key) {
        return json.hasNonNull(key);
    }

    /** Returns whether the key has a value that is not null, false or empty. */
    boolean isSet(String key) {
        JsonNode value = at(key);
        return has(key)
                && !(value.isBoolean() && !value.booleanValue())
                && !(value.isContainerNode() && value.isEmpty());
    }

    JsonNode at(String key) {
        return json.path(key);
    }

    ConfigReader object(String key) {
        if (has(key) && !at(key).isObject()) {
            throw refusal(key, "must hold keys and values");
        }
        return new ConfigReader(source + ": " + key, at(key));
    }

    boolean flag(String key) {
        if (has(key) && !at(key).isBoolean()) {
            throw refusal(key, "must be true or false");
        }
        return at(key).booleanValue();
    }

    String text(String key, String byDefault) {
        if (has(key) && !at(key).isTextual()) {
            throw refusal(key, "must be a text");
        }
        return has(key) ? at(key).asText() : byDefault;
    }

    double number(String key) {
        if (!at(key).isNumber()) {
            throw refusal(key, "must be a number");
        }
        return at(key).doubleValue();
    }

    double number(String key, double byDefault) {
        return has(key) ? number(key) : byDefault;
    }

    /** A fraction or an out-of-range number would otherwise be converted silently. */
    int integer(String key, int most) {
        return integer(key, 1, most);
    }

    int integer(String key, int least, int most) {
        JsonNode value = at(key);
        if (!value.isIntegralNumber()
                || !value.canConvertToInt()
                || value.intValue() < least
                || value.intValue() > most) {
            throw refusal(key, "must be a whole number from " + least + " to " + most);
        }
        return value.intValue();
    }

    CheckpointException refusal(String key, String reason) {
        return new CheckpointException(source + ": " + key + "=" + at(key) + ": " + reason);
    }

    Iterable<String> keys() {
        return json::fieldNames;
    }

    @Override
    public String toString() {
        return json.toString();
    }
}
