package dev.millrace.policy.tokenizer;

import dev.millrace.api.catalogue.BuiltIn;
import dev.millrace.api.catalogue.ExtensionPoint;
import dev.millrace.api.plugin.Kind;
import dev.millrace.api.tokenizer.TokenizerSettings;
import java.util.List;

/** Extension point of tokenizers, and Millrace's own kinds of it. */
public final class BuiltInTokenizers implements BuiltIn {

    @Override
    public String name() {
        return "tokenizers";
    }

    @Override
    public List<ExtensionPoint> extensionPoints() {
        return List.of(new ExtensionPoint(
                "tokenizer", TokenizerSettings.class, "task.tokenizer", "makes tokens of text and text of tokens"));
    }

    @Override
    public List<Kind> kinds() {
        return List.of(Kind.of(
                TokenizerSettings.class,
                "hugging_face",
                TokenizerDirectory.defaults(),
                "The tokenizer.json of a Hugging Face directory."));
    }
}
