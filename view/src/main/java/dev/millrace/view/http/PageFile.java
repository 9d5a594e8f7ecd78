package dev.millrace.view.http;

import dev.millrace.report.ReportPage;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.commons.codec.digest.DigestUtils;

/** The page as one file, script and style in it, so that it can be saved and opened without a server. */
final class PageFile {
    private static final String BEGIN = "<script id=\"app\" type=\"module\">";
    private static final String END = "</script>";

    private final byte[] bytes;
    private final String policy;

    private PageFile(byte[] bytes, String policy) {
        this.bytes = bytes;
        this.policy = policy;
    }

    static PageFile read() {
        byte[] bytes = ReportPage.empty();
        String text = new String(bytes, StandardCharsets.UTF_8);
        int begin = text.indexOf(BEGIN) + BEGIN.length();
        int end = text.indexOf(END, begin);
        return new PageFile(bytes, policy(text.substring(begin, end)));
    }

    /** Nothing but this script runs, and it talks to nobody but this server. */
    private static String policy(String script) {
        return "default-src 'none'; script-src 'sha256-"
                + Base64.getEncoder().encodeToString(DigestUtils.sha256(script))
                + "'; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none';"
                + " frame-ancestors 'none'";
    }

    byte[] bytes() {
        return bytes;
    }

    String policy() {
        return policy;
    }
}
