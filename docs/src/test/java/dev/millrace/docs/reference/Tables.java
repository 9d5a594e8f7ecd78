package dev.millrace.docs.reference;

/** Cells of Markdown tables. */
final class Tables {
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

    static String code(String text) {
        return text.isEmpty() ? "" : "`" + text + "`";
    }
}
