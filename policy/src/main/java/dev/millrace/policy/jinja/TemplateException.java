package dev.millrace.policy.jinja;

/** A program that cannot be read or rendered; the sentence names the line. */
public class TemplateException extends RuntimeException {
    private static final long serialVersionUID = 1;

    TemplateException(String sentence) {
        super(sentence);
    }

    TemplateException(String sentence, int line) {
        super(sentence + " (line " + line + ")");
    }

    /** The program itself refuses what it is given, by {@code raise_exception}. */
    public static final class RaisedException extends TemplateException {
        private static final long serialVersionUID = 1;

        RaisedException(String why) {
            super(why);
        }
    }
}
