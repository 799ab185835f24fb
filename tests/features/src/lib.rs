//! Nothing but dependencies. The tests' own dependencies switch features on in packages that the programs use, too; whoever builds
//! programs for a machine that also runs the tests adds this package to the selection, and both share every build of a dependency.
//! What is released is built without it.
