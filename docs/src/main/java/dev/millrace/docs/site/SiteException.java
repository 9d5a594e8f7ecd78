package dev.millrace.docs.site;

/** The pages cannot be made into a site; the message says which page and what is wrong with it. */
final class SiteException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    SiteException(String message) {
        super(message);
    }
}
