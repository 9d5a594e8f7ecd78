package dev.millrace.docs.reference;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A Javadoc comment as paragraphs of Markdown, without its tags.
 *
 * @param paragraphs in order
 */
record Javadoc(List<String> paragraphs) {

    /** The comment in front of a type's declaration. */
    static Javadoc ofType(SourceFile source) {
        int declared = source.text().indexOf("\npublic ");
        int end = source.text().lastIndexOf("*/", declared);
        int begin = source.text().lastIndexOf("/**", end);
        if (declared < 0 || begin < 0) {
            throw new AssertionError(source.path() + " has no public type with a comment");
        }
        return of(source.text().substring(begin, end));
    }

    static Javadoc of(String comment) {
        String text = comment.replaceAll("(?m)^\\s*(/\\*\\*|\\*)[ ]?", "")
                .replaceAll("(?s)\\n\\s*@(param|return|throws).*", "");
        List<String> paragraphs = new ArrayList<>();
        for (String paragraph : text.split("<p>|<ol>|<ul>")) {
            String markdown = markdown(paragraph);
            if (!markdown.isEmpty()) {
                paragraphs.add(markdown);
            }
        }
        return new Javadoc(paragraphs);
    }

    /** The first paragraph. */
    String first() {
        return paragraphs.get(0);
    }

    /** Text after a word and a colon at the beginning of a paragraph or a sentence. */
    Optional<String> after(String word) {
        return paragraphs.stream()
                .filter(paragraph -> paragraph.matches("(?s)(.*\\. )?" + word + ": .*"))
                .map(paragraph -> paragraph.substring(paragraph.indexOf(word + ": ") + word.length() + 2))
                .findFirst();
    }

    private static String markdown(String html) {
        return html.replaceAll("\\s+", " ")
                .replaceAll("\\{@code\\s+((?:[^{}]|\\{[^{}]*})*)}", "`$1`")
                .replaceAll("\\{@(?:link|linkplain)\\s+[\\w.]*?#?(\\w+)(?:\\([^)]*\\))?(?:\\s+([^}]*))?}", "`$1`")
                .replaceAll("\\{@value\\s+#?([^}]*)}", "`$1`")
                .replaceAll("</?(i|em)>", "*")
                .replaceAll("</?(b|strong)>", "**")
                .replaceAll("<li>", " ")
                .replaceAll("</?[a-z]+>", "")
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .strip();
    }
}
