"""The methods of the contract, one module per subject. `catalog` makes one table of them."""
