package dev.millrace.policy.jinja;

/** A program cannot be parsed or rendered; the message names the line. */
public class TemplateException extends RuntimeException {
    private static final long serialVersionUID = 1;

    TemplateException(String sentence) {
        super(sentence);
    }

    TemplateException(String sentence, int line) {
        super(sentence + " (line " + line + ")");
    }

    /** The program called {@code raise_exception}. */
    public static final class RaisedException extends TemplateException {
        private static final long serialVersionUID = 1;

        RaisedException(String why) {
            super(why);
        }
    }
}
