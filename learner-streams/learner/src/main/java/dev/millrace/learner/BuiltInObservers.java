package dev.millrace.learner;

import dev.millrace.api.catalogue.BuiltIn;
import dev.millrace.api.catalogue.ExtensionPoint;
import dev.millrace.api.plugin.Kind;
import dev.millrace.api.step.StepObserver;
import java.util.List;

/** The extension point for observers of optimiser steps. */
public final class BuiltInObservers implements BuiltIn {

    @Override
    public String name() {
        return "learner";
    }

    @Override
    public List<ExtensionPoint> extensionPoints() {
        return List.of(new ExtensionPoint(
                "step-observer", StepObserver.class, "observers", "observes each optimiser step before its commit"));
    }

    @Override
    public List<Kind> kinds() {
        return List.of();
    }
}
