package dev.millrace.docs.mention;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.commonmark.ext.gfm.tables.TablesExtension;
import org.commonmark.ext.heading.anchor.IdGenerator;
import org.commonmark.node.AbstractVisitor;
import org.commonmark.node.Code;
import org.commonmark.node.Heading;
import org.commonmark.node.Image;
import org.commonmark.node.Link;
import org.commonmark.node.Node;
import org.commonmark.node.Text;
import org.commonmark.parser.Parser;
import org.junit.jupiter.api.Test;

/** Links of all pages lead to files and headings that exist, pictures have a description, and the contents list every page. */
class LinksTest {
    private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
    private static final Path DOCS = ROOT.resolve("docs");
    private static final Path CONTENTS = DOCS.resolve("contents.md");
    private static final Parser PARSER =
            Parser.builder().extensions(List.of(TablesExtension.create())).build();

    private final Map<Path, Node> pages = new TreeMap<>();
    private final Map<Path, Set<String>> anchors = new TreeMap<>();
    private final Map<Path, List<String>> links = new TreeMap<>();
    private final List<String> problems = new ArrayList<>();

    @Test
    void shouldLeadEveryLinkSomewhere() throws IOException {
        read();
        links.forEach((page, targets) -> targets.forEach(target -> check(page, target)));

        assertThat(pages).hasSizeGreaterThan(30);
        assertThat(problems).isEmpty();
    }

    @Test
    void shouldListEveryPageInTheContents() throws IOException {
        read();
        List<Path> listed = links.get(CONTENTS).stream()
                .map(target -> CONTENTS.resolveSibling(target).normalize())
                .toList();

        assertThat(pages.keySet().stream()
                        .filter(page -> page.startsWith(DOCS) && !page.equals(CONTENTS))
                        .filter(page -> !page.getFileName().toString().equals("README.md"))
                        .filter(page -> listed.stream().noneMatch(page::startsWith)))
                .isEmpty();
    }

    private void read() throws IOException {
        try (Stream<Path> files = Files.walk(ROOT)) {
            for (Path file : files.filter(LinksTest::isPage).toList()) {
                pages.put(file, PARSER.parse(Files.readString(file)));
            }
        }
        pages.forEach(this::collect);
    }

    private static boolean isPage(Path file) {
        String name = ROOT.relativize(file).toString();
        return name.endsWith(".md")
                && !name.contains("target/")
                && !name.contains("node_modules/")
                && !name.startsWith("docs/api/");
    }

    private void collect(Path page, Node document) {
        IdGenerator ids = IdGenerator.builder().build();
        Set<String> headings = new HashSet<>();
        List<String> targets = new ArrayList<>();
        anchors.put(page, headings);
        links.put(page, targets);
        document.accept(new AbstractVisitor() {
            @Override
            public void visit(Heading heading) {
                headings.add(ids.generateId(text(heading)));
                visitChildren(heading);
            }

            @Override
            public void visit(Link link) {
                targets.add(link.getDestination());
                visitChildren(link);
            }

            @Override
            public void visit(Image image) {
                targets.add(image.getDestination());
                if (image.getFirstChild() == null) {
                    problems.add(page + ": a picture without a description: " + image.getDestination());
                }
            }
        });
    }

    private void check(Path page, String written) {
        if (URI.create(written).isAbsolute()) {
            return;
        }
        int hash = written.indexOf('#');
        String path = hash < 0 ? written : written.substring(0, hash);
        Path target = path.isEmpty() ? page : page.resolveSibling(path).normalize();
        if (!target.startsWith(ROOT) || !Files.exists(target)) {
            problems.add(page + ": " + written + " leads to nothing");
        } else if (hash >= 0 && !anchors.getOrDefault(target, Set.of()).contains(written.substring(hash + 1))) {
            problems.add(page + ": " + written + " leads to no heading; there are " + anchors.get(target));
        }
    }

    private static String text(Node heading) {
        StringBuilder text = new StringBuilder();
        heading.accept(new AbstractVisitor() {
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
