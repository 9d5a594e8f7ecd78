package dev.millrace.docs.site;

import java.util.List;

/** What surrounds the text of a page: head, navigation, the pages before and after it. */
final class PageTemplate {
    private final Contents contents;

    PageTemplate(Contents contents) {
        this.contents = contents;
    }

    String html(Page page, String body) {
        return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                + "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                + "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" + escaped(page.title())
                + " · Millrace</title>\n<link rel=\"stylesheet\" href=\"" + Links.relative(page, "site.css")
                + "\">\n</head>\n<body>\n<a class=\"pages\" href=\"#pages\">Millrace: all pages</a>\n<main>\n" + body
                + neighbours(page) + "</main>\n" + navigation(page) + "</body>\n</html>\n";
    }

    /** Behind the text, where a narrow screen has it; a wide one shows it at the left. */
    private String navigation(Page page) {
        StringBuilder html = new StringBuilder("<nav id=\"pages\" aria-label=\"Pages\">\n");
        for (Contents.Section section : contents.sections()) {
            html.append("<h2>").append(escaped(section.title())).append("</h2>\n<ul>\n");
            for (Contents.Entry entry : section.entries()) {
                html.append("<li>").append(link(page, entry, entry.title())).append("</li>\n");
            }
            html.append("</ul>\n");
        }
        return html.append("</nav>\n").toString();
    }

    private String neighbours(Page page) {
        List<Contents.Entry> entries = contents.entries();
        int at = entries.indexOf(page.entry());
        StringBuilder html = new StringBuilder("<footer>\n");
        if (at > 0) {
            html.append(link(
                            page,
                            entries.get(at - 1),
                            "← " + entries.get(at - 1).title()))
                    .append('\n');
        }
        if (at + 1 < entries.size()) {
            html.append(link(page, entries.get(at + 1), entries.get(at + 1).title() + " →"))
                    .append('\n');
        }
        return html.append("</footer>\n").toString();
    }

    private static String link(Page page, Contents.Entry entry, String text) {
        boolean here = entry.equals(page.entry());
        return "<a href=\"" + Links.relative(page, entry.target()) + "\"" + (here ? " aria-current=\"page\"" : "") + ">"
                + escaped(text) + "</a>";
    }

    private static String escaped(String text) {
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
    }
}
