package dev.millrace.docs.site;

import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import org.commonmark.node.AbstractVisitor;
import org.commonmark.node.Image;
import org.commonmark.node.Link;

/**
 * Where the links of all pages lead: each is rewritten for the site, or told as a problem.
 *
 * <p>One owner; used once for each page.
 */
final class Links {
    private final Path repository;
    private final Map<Path, Page> pages;
    private final Map<Path, Set<String>> anchors;
    private final SortedMap<String, Path> files = new TreeMap<>();
    private final List<String> problems = new ArrayList<>();

    /**
     * @param repository the root; links must not lead above it
     * @param pages by source
     * @param anchors of every page, by source
     */
    Links(Path repository, Map<Path, Page> pages, Map<Path, Set<String>> anchors) {
        this.repository = repository;
        this.pages = pages;
        this.anchors = anchors;
    }

    /** Rewrites the links and pictures of a page. */
    void rewrite(Page page) {
        page.document().accept(new AbstractVisitor() {
            @Override
            public void visit(Link link) {
                link.setDestination(destination(page, link.getDestination()));
                visitChildren(link);
            }

            @Override
            public void visit(Image image) {
                image.setDestination(destination(page, image.getDestination()));
                if (image.getFirstChild() == null) {
                    problems.add(
                            page.entry().source() + ": a picture without a description: " + image.getDestination());
                }
                visitChildren(image);
            }
        });
    }

    /** Files of the repository that pages link to, by their place in the site. */
    SortedMap<String, Path> files() {
        return files;
    }

    /** A sentence for each link that leads nowhere. */
    List<String> problems() {
        return problems;
    }

    private String destination(Page page, String written) {
        if (URI.create(written).isAbsolute()) {
            return written;
        }
        int hash = written.indexOf('#');
        String path = hash < 0 ? written : written.substring(0, hash);
        String anchor = hash < 0 ? "" : written.substring(hash + 1);
        Path source = page.entry().source();
        Path target = path.isEmpty() ? source : source.resolveSibling(path).normalize();
        Page other = pages.get(target);
        if (other == null) {
            return file(page, written, target);
        }
        var headings = anchors.getOrDefault(target, Set.of());
        if (!anchor.isEmpty() && !headings.contains(anchor)) {
            problems.add(source + ": " + written + " leads to a heading that is not there; there are "
                    + String.join(", ", headings));
        }
        String there = path.isEmpty() ? "" : relative(page, other.entry().target());
        return there + (anchor.isEmpty() ? "" : "#" + anchor);
    }

    private String file(Page page, String written, Path target) {
        if (!target.startsWith(repository)) {
            problems.add(page.entry().source() + ": " + written + " leads out of the repository");
            return written;
        }
        if (!Files.isRegularFile(target)) {
            problems.add(page.entry().source() + ": " + written + " leads to "
                    + (Files.isDirectory(target) ? "a folder; link to a file in it" : "nothing"));
            return written;
        }
        String place = "files/" + repository.relativize(target).toString().replace('\\', '/');
        files.put(place, target);
        return relative(page, place);
    }

    /** From a page of the site to another place in it. */
    static String relative(Page page, String target) {
        long depth = page.entry().target().chars().filter(c -> c == '/').count();
        return "../".repeat((int) depth) + target;
    }
}
