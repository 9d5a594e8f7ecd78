package dev.millrace.docs.site;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import org.commonmark.node.AbstractVisitor;
import org.commonmark.node.Code;
import org.commonmark.node.Heading;
import org.commonmark.node.Node;
import org.commonmark.node.Text;

/**
 * A page as it was parsed.
 *
 * @param entry its place in the contents
 * @param title its first heading, which every page has
 * @param document links in it are rewritten in place
 */
record Page(Contents.Entry entry, String title, Node document) {

    /**
     * Reads and parses a page.
     *
     * @throws SiteException if it is not there or does not begin with a heading of the first level
     */
    static Page read(Contents.Entry entry, Markdown markdown) {
        if (!Files.isRegularFile(entry.source())) {
            throw new SiteException("contents.md names a page that is not there: " + entry.source());
        }
        try {
            Node document = markdown.parse(Files.readString(entry.source()));
            if (!(document.getFirstChild() instanceof Heading heading) || heading.getLevel() != 1) {
                throw new SiteException(entry.source() + " must begin with its title, '# Title'");
            }
            return new Page(entry, text(heading), document);
        } catch (IOException e) {
            throw new UncheckedIOException("a page cannot be read: " + entry.source(), e);
        }
    }

    private static String text(Node node) {
        StringBuilder text = new StringBuilder();
        node.accept(new AbstractVisitor() {
            @Override
            public void visit(Text part) {
                text.append(part.getLiteral());
            }

            @Override
            public void visit(Code part) {
                text.append(part.getLiteral());
            }
        });
        return text.toString();
    }
}
