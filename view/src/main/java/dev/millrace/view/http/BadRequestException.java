package dev.millrace.view.http;

/** An address that asks for nothing that there is; the message is a sentence for the person. */
final class BadRequestException extends Exception {
    private static final long serialVersionUID = 1L;

    BadRequestException(String message) {
        super(message);
    }
}
