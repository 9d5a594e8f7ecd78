package dev.millrace.docs.reference;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Cells of Markdown tables. */
final class Tables {
    private static final Pattern SENTENCE_END = Pattern.compile("\\. (?=[A-Z])");

    private Tables() {}

    static String row(String... cells) {
        StringBuilder row = new StringBuilder("|");
        for (String cell : cells) {
            row.append(' ')
                    .append(cell.replaceAll("\\s+", " ").replace("|", "\\|").strip())
                    .append(" |");
        }
        return row.append('\n').toString();
    }

    static String head(String... titles) {
        return row(titles) + "|" + " --- |".repeat(titles.length) + "\n";
    }

    /** Returns the text up to its first full stop that ends a sentence. */
    static String firstSentence(String text) {
        String flat = text.replaceAll("\\s+", " ").strip();
        Matcher end = SENTENCE_END.matcher(flat);
        return end.find() ? flat.substring(0, end.start() + 1) : flat;
    }

    static String code(String text) {
        return text.isEmpty() ? "" : "`" + text + "`";
    }
}
