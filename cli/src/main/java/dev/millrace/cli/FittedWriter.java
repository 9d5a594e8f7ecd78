package dev.millrace.cli;

import java.io.IOException;
import java.io.Writer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Wraps lines wider than the terminal between words and indents continuations to their text. It does not wrap commands, output for
 * programs, or a line that is written in pieces, such as progress. Confined to one thread.
 */
final class FittedWriter extends Writer {
    /** Matches a label and a gap before the text; a table has more than one gap. */
    private static final Pattern LABELLED = Pattern.compile("^( {0,4}\\S{1,16}( \\S{1,10}){0,2} {2,})\\S");

    private static final Pattern COPIED = Pattern.compile("^ *(#|\\{|\\[|\"|\\||(\\./)?millrace |export |kafka-)");
    private static final int FURTHER = 2;
    private static final char ESCAPE = '\u001b';

    private final Writer to;
    private final int columns;
    private final StringBuilder line = new StringBuilder();
    private boolean isBegun;

    FittedWriter(Writer to, int columns) {
        this.to = to;
        this.columns = columns;
    }

    @Override
    public void write(char[] text, int offset, int length) throws IOException {
        for (int i = offset; i < offset + length; i++) {
            if (text[i] == '\n') {
                to.write(isBegun ? line.toString() : fitted(line.toString()));
                to.write('\n');
                line.setLength(0);
                isBegun = false;
            } else {
                line.append(text[i]);
            }
        }
    }

    private String fitted(String whole) {
        if (whole.length() <= columns
                || whole.indexOf(ESCAPE) >= 0
                || COPIED.matcher(whole).find()) {
            return whole;
        }
        StringBuilder fitted = new StringBuilder();
        String indent = " ".repeat(indent(whole));
        String rest = whole;
        while (rest.length() > columns) {
            int end = rest.lastIndexOf(' ', columns);
            if (rest.substring(0, Math.max(0, end)).isBlank()) { // word longer than the line
                end = rest.indexOf(' ', columns);
            }
            if (end < 0) {
                break;
            }
            fitted.append(rest.substring(0, end).stripTrailing()).append('\n');
            rest = indent + rest.substring(end).stripLeading();
        }
        return fitted.append(rest).toString();
    }

    private int indent(String whole) {
        Matcher labelled = LABELLED.matcher(whole);
        if (labelled.find() && labelled.group(1).length() <= columns / 2) {
            return labelled.group(1).length();
        }
        int leading = whole.length() - whole.stripLeading().length();
        return leading + FURTHER <= columns / 2 ? leading + FURTHER : 0;
    }

    @Override
    public void flush() throws IOException {
        if (line.length() > 0) {
            to.write(line.toString());
            line.setLength(0);
            isBegun = true;
        }
        to.flush();
    }

    @Override
    public void close() throws IOException {
        flush();
        to.close();
    }
}
