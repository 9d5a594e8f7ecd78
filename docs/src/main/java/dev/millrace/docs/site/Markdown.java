package dev.millrace.docs.site;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.commonmark.Extension;
import org.commonmark.ext.gfm.tables.TablesExtension;
import org.commonmark.ext.heading.anchor.HeadingAnchorExtension;
import org.commonmark.node.Node;
import org.commonmark.parser.Parser;
import org.commonmark.renderer.html.HtmlRenderer;

/** Markdown with tables, and with an anchor at every heading. Immutable. */
final class Markdown {
    private static final Pattern ANCHOR = Pattern.compile(" id=\"([^\"]+)\"");

    private final Parser parser;
    private final HtmlRenderer renderer;

    Markdown() {
        List<Extension> extensions = List.of(TablesExtension.create(), HeadingAnchorExtension.create());
        this.parser = Parser.builder().extensions(extensions).build();
        this.renderer = HtmlRenderer.builder().extensions(extensions).build();
    }

    Node parse(String text) {
        return parser.parse(text);
    }

    /** The body of a page; wide tables scroll by themselves, so that the page does not. */
    String html(Node document) {
        return renderer.render(document)
                .replace("<table>", "<div class=\"wide\" tabindex=\"0\"><table>")
                .replace("</table>", "</table></div>");
    }

    /** The anchors of a page, as links may name them. */
    Set<String> anchors(Node document) {
        Set<String> anchors = new TreeSet<>();
        for (Matcher matcher = ANCHOR.matcher(renderer.render(document)); matcher.find(); ) {
            anchors.add(matcher.group(1));
        }
        return anchors;
    }
}
