package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.DoubleNode;
import com.fasterxml.jackson.databind.node.TextNode;

/** Numbers in golden files; NaN and infinities are strings. */
public final class JsonNumbers {
    private JsonNumbers() {}

    static boolean isNumber(JsonNode node) {
        return node.isNumber() || isNonFinite(node);
    }

    static double read(JsonNode node, String where) {
        if (node.isNumber()) {
            return node.doubleValue();
        }
        if (isNonFinite(node)) {
            return Double.parseDouble(node.textValue());
        }
        throw new MalformedCaseException(where + " must be a number: " + node);
    }

    public static JsonNode write(double value) {
        return Double.isFinite(value) ? DoubleNode.valueOf(value) : TextNode.valueOf(Double.toString(value));
    }

    private static boolean isNonFinite(JsonNode node) {
        if (!node.isTextual()) {
            return false;
        }
        String text = node.textValue();
        return text.equals("NaN") || text.equals("Infinity") || text.equals("-Infinity");
    }
}
