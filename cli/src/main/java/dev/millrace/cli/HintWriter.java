package dev.millrace.cli;

import java.io.PrintWriter;
import java.io.Writer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Replaces {@code millrace COMMAND} in hints by the command as it was typed, ready to copy. */
final class HintWriter extends PrintWriter {
    static final String COMMAND = "millrace";

    private final Pattern hint;
    private final String typed;

    /** @param typed text before the name of a command, such as {@code ./millrace} */
    HintWriter(Writer out, String typed) {
        super(out, true);
        String names = CommandList.names().stream().map(Pattern::quote).collect(Collectors.joining("|"));
        this.hint = Pattern.compile("(?<![\\w./-])" + COMMAND + "(?= (?:" + names + ")\\b)");
        this.typed = Matcher.quoteReplacement(typed);
    }

    @Override
    public void write(String text, int offset, int length) {
        String written = hint.matcher(text.substring(offset, offset + length)).replaceAll(typed);
        super.write(written, 0, written.length());
    }
}
